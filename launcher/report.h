/*
 * The report: the last thing on the screen when a job has failed.
 */
#ifndef FLAUNCH_LAUNCHER_REPORT_H
#define FLAUNCH_LAUNCHER_REPORT_H

#include "common/buf.h"
#include "launcher/failure.h"
#include "launcher/last_lines.h"

#include <stdint.h>

#define REPORT_LAST_LINES 20 /* of the rank that failed first */
#define REPORT_ERROR_LINES 5 /* of what its error file says */
#define REPORT_ALSO_FAILED 4 /* other ranks with a line of their own */

/* How the last lines are to be had. */
enum report_last {
    REPORT_STDERR, /* of stderr */
    REPORT_BOTH,   /* of stdout and stderr together */
    REPORT_ABOVE,  /* the worker wrote to the screen itself */
};

/* What is known; all of it is the caller's. */
struct report {
    const struct outcome *outcome;
    const char *run_id;
    const char *host;
    int exit_code;    /* of the whole job */
    uint32_t attempt; /* counted from 0 */
    uint32_t max_restarts;
    enum report_last last_kind;
    const struct last_lines *last; /* NULL: unknown */
    const char *error;             /* what its error file says; NULL: nothing */
    const char *callstack;         /* from its error file; NULL: none */
    const char
        *error_trouble;    /* why its error file could not be read, or NULL */
    const char *log;       /* path of its log, or NULL */
    const char *full_disk; /* path of a log whose disk is full, or NULL */
    int64_t oom_kills;     /* since the start; -1: not known */
    const char *losses;    /* lines on our own output, "" */
};

/*
 * Append the lines below the first one (which outcome_describe makes), each
 * indented: at most 39. Nothing where no worker failed. 0 or -ENOMEM.
 */
int report_print(const struct report *report, struct buf *out);

/* "0-2, 5": the ranks for which want(worker) holds; how many there are. */
uint32_t report_ranks(const struct worker_group *group,
                      bool (*want)(const struct worker *), char *text_out,
                      size_t size);

/* What became of a worker, for lists. */
bool report_is_stopped(const struct worker *worker); /* by flaunch */
bool report_is_done(const struct worker *worker);    /* ended well */

/* Failed by itself, beside the first. */
bool report_also_failed(const struct outcome *outcome, uint32_t rank);

#endif
