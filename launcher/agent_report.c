#include "launcher/agent_report.h"

#include "common/env_names.h"
#include "common/log.h"
#include "launcher/cgroup.h"
#include "launcher/error_report.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SENTENCE_BYTES 512

/* What the failed worker's own output is, and where. */
static void find_output(const struct agent_report *from, uint32_t rank,
                        struct report *report)
{
    const struct stream_plan *plan = &from->attempt->plan;

    switch (plan->streams[rank][GUARD_ERR].kind) {
    case GUARD_STREAM_OURS:
        report->last_kind = REPORT_ABOVE;
        break;
    case GUARD_STREAM_JOINED:
        report->last_kind = REPORT_BOTH;
        break;
    default:
        report->last_kind = REPORT_STDERR;
        break;
    }
    report->last = streams_last(from->streams, rank);
    report->log = plan->paths[2 * (size_t)rank + GUARD_ERR];
    if (report->log == NULL) {
        report->log = plan->paths[2 * (size_t)rank + GUARD_OUT];
    }
}

/* A log of the failed worker on a disk without room. */
static const char *find_full_disk(const struct stream_plan *plan, uint32_t rank)
{
    struct statvfs disk;
    size_t i;

    for (i = 2 * (size_t)rank; i < 2 * (size_t)rank + 2; i++) {
        if (plan->paths[i] != NULL && statvfs(plan->paths[i], &disk) == 0 &&
            disk.f_blocks > 0 && disk.f_bavail == 0) {
            return plan->paths[i];
        }
    }
    return NULL;
}

static int64_t oom_kills_since(int64_t before)
{
    int64_t now = cgroup_oom_kills("");

    return before < 0 || now < before ? -1 : now - before;
}

/* The report of this node, and what it borrows. */
struct made {
    struct report report;
    struct error_record record;
    struct err trouble;
    char host[256];
};

static void make(const struct agent_report *from, int exit_code,
                 struct made *made)
{
    uint32_t rank = from->outcome->group->first_failure;
    struct report *report = &made->report;

    *made = (struct made){
        .report = { .outcome = from->outcome,
                    .run_id = from->job->run_id,
                    .exit_code = exit_code,
                    .attempt = from->job->attempt,
                    .max_restarts = from->job->max_restarts,
                    .oom_kills = -1,
                    .losses = "" },
    };
    (void)gethostname(made->host, sizeof(made->host) - 1);
    report->host = made->host;
    if (rank == WORKER_NONE) {
        return;
    }
    report->oom_kills = oom_kills_since(from->oom_kills_before);
    find_output(from, rank, report);
    report->full_disk = find_full_disk(&from->attempt->plan, rank);
    if (from->attempt->error_files[rank] != NULL &&
        error_record_read(from->attempt->error_files[rank], &made->record,
                          &made->trouble) < 0) {
        report->error_trouble = made->trouble.text;
    }
    report->error = made->record.message;
    report->callstack = made->record.callstack;
}

int agent_report_make(const struct agent_report *from, struct buf *text_out)
{
    struct made made;
    int rc;

    if (from->outcome->group->first_failure == WORKER_NONE) {
        return 0;
    }
    make(from, outcome_exit_code(from->outcome), &made);
    rc = report_print(&made.report, text_out);
    if (rc == 0) {
        rc = buf_append_u8(text_out, '\0');
    }
    error_record_destroy(&made.record);
    return rc;
}

/* As JSON, for whoever started us. */
static void write_error_file(const struct agent_report *from,
                             const struct agent_end *end)
{
    const char *path = getenv(ENV_ERROR_FILE);
    char sentence[SENTENCE_BYTES];
    struct err err = { 0 };
    struct made made;

    if (path == NULL || path[0] == '\0' || end->code == 0) {
        return;
    }
    if (end->text[0] == '\0' || end->said) {
        (void)snprintf(sentence, sizeof(sentence), "the job was stopped: %s",
                       end->text[0] != '\0' ? end->text
                                            : "flaunch itself failed");
    } else {
        (void)snprintf(sentence, sizeof(sentence), "%s", end->text);
    }
    make(from, end->code, &made);
    if (error_report_write(path, &made.record, sentence, &made.report, &err) <
        0) {
        log_line(LOG_WARN, "%s", err.text);
    }
    error_record_destroy(&made.record);
}

/* From another node it may hold anything. */
static void say_lines(struct streams *streams, const char *lines)
{
    size_t len = strlen(lines);
    char *copy = strdup(lines);
    size_t i;

    if (copy == NULL) {
        return;
    }
    for (i = 0; i < len; i++) {
        if (iscntrl((unsigned char)copy[i]) && copy[i] != '\n') {
            copy[i] = '?';
        }
    }
    streams_say(streams, copy, len);
    free(copy);
}

void agent_report_say(const struct agent_report *from,
                      const struct agent_end *end)
{
    struct buf losses = { 0 };

    if (end->text[0] != '\0' && !end->said) {
        log_line(LOG_ERROR, "%s", end->text);
    }
    if (end->report[0] != '\0') {
        say_lines(from->streams, end->report);
    }
    if (streams_describe_losses(from->streams, &losses) == 0 &&
        losses.len > 0) {
        streams_say(from->streams, (const char *)losses.data, losses.len);
    }
    buf_destroy(&losses);
    write_error_file(from, end);
}
