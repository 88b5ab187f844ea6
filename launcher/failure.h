/*
 * How a run ended: the line a person reads, and our exit code.
 */
#ifndef FLAUNCH_LAUNCHER_FAILURE_H
#define FLAUNCH_LAUNCHER_FAILURE_H

#include "launcher/worker_group.h"

/* What the agent knows at the end. */
struct outcome {
    const struct worker_group *group;
    const char *program; /* for a failed exec */
    const char *host;    /* of this node, where there are several; or NULL */
    int stop_signal;     /* the first that stopped us; 0: none */
    bool timed_out;      /* a time limit of ours stopped it */
    int own_failure;     /* EXIT_FLAUNCH when flaunch itself failed, else 0 */
};

/*
 * The exit code as in flaunch(1): a time limit; the first failing worker's
 * code; flaunch's own failure; 0 when all exited 0; after a stop signal a
 * worker's own non-zero code, else 128 + that signal.
 */
int outcome_exit_code(const struct outcome *outcome);

/*
 * The line on the first failure, "" where none failed:
 * "rank 2 (pid 123) exited with code 7 after 1.2 s; 3 others stopped".
 */
void outcome_describe(const struct outcome *outcome, char *text_out,
                      size_t size);

#endif
