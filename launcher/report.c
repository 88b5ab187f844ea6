#include "launcher/report.h"

#include "common/text.h"
#include "launcher/exit_status.h"
#include "launcher/signal_names.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define LINE_BYTES 1024

bool report_is_stopped(const struct worker *worker)
{
    return worker->stopped_by_us && worker->state == WORKER_EXITED;
}

bool report_is_done(const struct worker *worker)
{
    return worker_ended_well(worker) && !worker->stopped_by_us;
}

bool report_also_failed(const struct outcome *outcome, uint32_t rank)
{
    const struct worker *worker = &outcome->group->workers[rank];

    return rank != outcome->group->first_failure && !worker->stopped_by_us &&
           (worker->state == WORKER_FAILED ||
            (worker->state == WORKER_EXITED && !worker_ended_well(worker)));
}

uint32_t report_ranks(const struct worker_group *group,
                      bool (*want)(const struct worker *), char *text_out,
                      size_t size)
{
    uint32_t base = group->base_rank;
    uint32_t total = 0;
    size_t len = 0;
    uint32_t i = 0;

    text_out[0] = '\0';
    while (i < group->n) {
        uint32_t first = i;

        while (i < group->n && want(&group->workers[i])) {
            i++;
        }
        if (i > first) {
            const char *comma = len > 0 ? ", " : "";

            total += i - first;
            if (len + 32 > size) {
                continue; /* the number tells the rest */
            }
            len +=
                (size_t)(i - first > 1
                             ? snprintf(text_out + len, size - len, "%s%u-%u",
                                        comma, base + first, base + i - 1)
                             : snprintf(text_out + len, size - len, "%s%u",
                                        comma, base + first));
        } else {
            i++;
        }
    }
    return total;
}

__attribute__((format(printf, 2, 3))) static int
put_line(struct buf *out, const char *format, ...)
{
    char text[LINE_BYTES];
    char line[LINE_BYTES + 8] = "  ";
    va_list args;
    size_t len;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    len = 2 + text_escape(line + 2, LINE_BYTES, text);
    line[len++] = '\n';
    return buf_append(out, line, len);
}

/* "job none on HOST, attempt 2 of 3, running PATH, peak memory 81 MiB" */
static int put_where(const struct report *report, const struct worker *worker,
                     struct buf *out)
{
    char attempt[48] = "";
    char peak[48] = "";

    if (report->max_restarts > 0) {
        (void)snprintf(attempt, sizeof(attempt), ", attempt %u of %u",
                       report->attempt + 1, report->max_restarts + 1);
    }
    if (worker->peak_kib > 0) {
        (void)snprintf(peak, sizeof(peak), ", peak memory %" PRIu64 " MiB",
                       (worker->peak_kib + 1023) / 1024);
    }
    return put_line(out, "job %s on %s%s, running %s%s", report->run_id,
                    report->host, attempt, report->outcome->program, peak);
}

/* Who sent a signal, and what the kernel says of memory. */
static int put_signal(const struct report *report, const struct worker *worker,
                      struct buf *out)
{
    char buffer[32] = "";
    const char *name;
    const char *why = "";
    char hits[128] = "";

    if (report->oom_kills > 0) {
        (void)snprintf(hits, sizeof(hits),
                       "the memory limit of this container or job was hit: the "
                       "kernel killed %" PRId64 " process%s for it",
                       report->oom_kills, report->oom_kills == 1 ? "" : "es");
    }
    if (worker->state != WORKER_EXITED || !WIFSIGNALED(worker->wait_status)) {
        return report->oom_kills > 0 ? put_line(out, "%s", hits) : 0;
    }
    name = signal_name(WTERMSIG(worker->wait_status), buffer, sizeof(buffer));
    if (report->oom_kills > 0) {
        return put_line(out, "%s was not sent by flaunch; %s", name, hits);
    }
    if (worker->overdue) {
        return 0; /* the watchdog's, and said above */
    }
    if (WTERMSIG(worker->wait_status) == SIGKILL) {
        why = "; often it is the kernel's out-of-memory killer: see dmesg";
    }
    return put_line(out, "%s was not sent by flaunch%s", name, why);
}

/* What the error file says, its first lines. */
static int put_error(const struct report *report, struct buf *out)
{
    const char *at = report->error;
    int n = 0;
    int rc = 0;

    if (report->error_trouble != NULL) {
        return put_line(out, "%s", report->error_trouble);
    }
    while (at != NULL && *at != '\0' && n < REPORT_ERROR_LINES && rc == 0) {
        size_t len = strcspn(at, "\n");

        rc = put_line(out, "%s%.*s", n == 0 ? "it reported: " : "  ",
                      (int)(len < LINE_BYTES ? len : LINE_BYTES), at);
        at += len + (at[len] == '\n');
        n++;
    }
    return rc;
}

/* Where it was, for want of its last lines. */
static int put_callstack(const struct report *report, struct buf *out)
{
    struct last_lines last = { 0 };
    int rc = put_line(out, "its call stack:");

    last_lines_add(&last, (const uint8_t *)report->callstack,
                   strlen(report->callstack));
    if (rc == 0) {
        rc = last_lines_print(&last, REPORT_LAST_LINES, "    ", out);
    }
    last_lines_destroy(&last);
    return rc < 0 ? rc : 0;
}

static int put_last_lines(const struct report *report, struct buf *out)
{
    bool both = report->last_kind == REPORT_BOTH;
    int rc;

    if (report->last_kind == REPORT_ABOVE && report->outcome->host != NULL) {
        return put_line(out, "its last lines stand on the screen of %s",
                        report->outcome->host); /* others print this too */
    }
    if (report->last_kind == REPORT_ABOVE) {
        return put_line(out, "its last lines stand above");
    }
    if (report->last == NULL || report->last->len == 0) {
        return report->callstack != NULL ? put_callstack(report, out) : 0;
    }
    rc = put_line(out, "its last lines%s:", both ? "" : " on stderr");
    if (rc == 0) {
        rc = last_lines_print(report->last, REPORT_LAST_LINES, "    ", out);
    }
    return rc < 0 ? rc : 0;
}

static int put_also_failed(const struct report *report, struct buf *out)
{
    const struct worker_group *group = report->outcome->group;
    const struct worker *first = &group->workers[group->first_failure];
    uint32_t n = 0;
    uint32_t i;
    int rc = 0;

    for (i = 0; i < group->n && rc == 0; i++) {
        const struct worker *worker = &group->workers[i];
        char how[96];

        if (!report_also_failed(report->outcome, i)) {
            continue;
        }
        if (++n > REPORT_ALSO_FAILED - 1) {
            continue;
        }
        if (worker->state == WORKER_FAILED) {
            rc = put_line(out, "also failed: rank %u could not be started: %s",
                          group->base_rank + i, strerror((int)worker->error));
        } else {
            exit_status_describe(worker->wait_status, how, sizeof(how));
            rc = put_line(out, "also failed: rank %u (pid %u) %s, %.3f s later",
                          group->base_rank + i, worker->pid, how,
                          (double)(worker->ended_ns - first->ended_ns) / 1e9);
        }
    }
    if (n > REPORT_ALSO_FAILED - 1 && rc == 0) {
        rc =
            put_line(out, "also failed: %u more", n - (REPORT_ALSO_FAILED - 1));
    }
    return rc;
}

static int put_others(const struct report *report, struct buf *out)
{
    const struct worker_group *group = report->outcome->group;
    char ranks[256];
    uint32_t n = report_ranks(group, report_is_stopped, ranks, sizeof(ranks));
    int rc = 0;

    if (n > 0) {
        rc = put_line(out, "stopped by flaunch: rank%s %s", n == 1 ? "" : "s",
                      ranks);
    }
    n = report_ranks(group, report_is_done, ranks, sizeof(ranks));
    if (n > 0 && rc == 0) {
        rc = put_line(out, "already done: rank%s %s", n == 1 ? "" : "s", ranks);
    }
    return rc;
}

static int put_files(const struct report *report, struct buf *out)
{
    int rc = 0;

    if (report->full_disk != NULL) {
        rc = put_line(out, "the disk of %s is full: No space left on device",
                      report->full_disk);
    }
    if (report->log != NULL && rc == 0) {
        rc = put_line(out, "its log: %s", report->log);
    }
    return rc;
}

/* Everything about the worker that failed first, and about the others. */
static int put_failure(const struct report *report, const struct worker *first,
                       struct buf *out)
{
    int rc = put_where(report, first, out);

    rc = rc == 0 ? put_signal(report, first, out) : rc;
    rc = rc == 0 ? put_error(report, out) : rc;
    rc = rc == 0 ? put_last_lines(report, out) : rc;
    rc = rc == 0 ? put_files(report, out) : rc;
    rc = rc == 0 ? put_also_failed(report, out) : rc;
    return rc == 0 ? put_others(report, out) : rc;
}

int report_print(const struct report *report, struct buf *out)
{
    const struct worker_group *group = report->outcome->group;
    const struct worker *first;
    int rc = 0;

    if (group->first_failure != WORKER_NONE) {
        first = &group->workers[group->first_failure];
        /* One that never ran has said all in its first line. */
        rc =
            first->state == WORKER_EXITED ? put_failure(report, first, out) : 0;
    }
    return rc == 0 ? buf_append(out, report->losses, strlen(report->losses))
                   : rc;
}
