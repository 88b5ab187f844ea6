#include "launcher/agent_report.h"

#include "common/env_names.h"
#include "common/log.h"
#include "launcher/cgroup.h"
#include "launcher/error_report.h"

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

/* The first line, and the sentence of the error file. */
static void say_sentence(const struct agent_report *from, char *text,
                         size_t size)
{
    outcome_describe(from->outcome, text, size);
    if (text[0] != '\0') {
        log_line(LOG_ERROR, "%s", text);
    } else {
        (void)snprintf(text, size, "the job was stopped: %s",
                       from->reason[0] != '\0' ? from->reason
                                               : "flaunch itself failed");
    }
}

static void write_error_file(const struct report *report,
                             const struct error_record *record,
                             const char *sentence)
{
    const char *path = getenv(ENV_ERROR_FILE);
    struct err err = { 0 };

    if (path != NULL && path[0] != '\0' &&
        outcome_exit_code(report->outcome) != 0 &&
        error_report_write(path, record, sentence, report, &err) < 0) {
        log_line(LOG_WARN, "%s", err.text);
    }
}

void agent_report_say(const struct agent_report *from)
{
    uint32_t rank = from->outcome->group->first_failure;
    char sentence[SENTENCE_BYTES];
    char host[256] = "";
    struct error_record record = { 0 };
    struct err trouble = { 0 };
    struct buf losses = { 0 };
    struct buf text = { 0 };
    bool well = outcome_exit_code(from->outcome) == 0;
    struct report report = {
        .outcome = from->outcome,
        .run_id = from->job->run_id,
        .host = host,
        .attempt = from->job->attempt,
        .max_restarts = from->job->max_restarts,
        .oom_kills = well ? -1 : oom_kills_since(from->oom_kills_before),
    };

    (void)gethostname(host, sizeof(host) - 1);
    say_sentence(from, sentence, sizeof(sentence));
    if (rank != WORKER_NONE) {
        find_output(from, rank, &report);
        report.full_disk = find_full_disk(&from->attempt->plan, rank);
        if (from->attempt->error_files[rank] != NULL &&
            error_record_read(from->attempt->error_files[rank], &record,
                              &trouble) < 0) {
            report.error_trouble = trouble.text;
        }
        report.error = record.message;
        report.callstack = record.callstack;
    }
    if (streams_describe_losses(from->streams, &losses) == 0 &&
        buf_append_u8(&losses, '\0') == 0) {
        report.losses = (const char *)losses.data;
        if (report_print(&report, &text) == 0 && text.len > 0) {
            streams_say(from->streams, (const char *)text.data, text.len);
        }
    }
    write_error_file(&report, &record, sentence);
    error_record_destroy(&record);
    buf_destroy(&losses);
    buf_destroy(&text);
}
