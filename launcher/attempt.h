/*
 * One attempt of the job on this node: its workers.
 */
#ifndef FLAUNCH_LAUNCHER_ATTEMPT_H
#define FLAUNCH_LAUNCHER_ATTEMPT_H

#include "launcher/config.h"
#include "launcher/stream_plan.h"
#include "launcher/worker_group.h"

/* Zero-initialise; attempt_end makes it so again. */
struct attempt {
    struct worker_group group;
    struct stream_plan plan;
    char **error_files; /* one for each worker, or NULL */
    struct node_place place;
};

/* Where the files of a run are; either may be missing. */
struct run_files {
    struct log_dir log;
    char *run_dir;    /* for error files, where there are no logs */
    char *timer_file; /* the watchdog's FIFO */
};

/*
 * Make the directories and files of an attempt, and hand the guard, over its
 * end of the pair, what to start; place is this node's. 0 or a negative errno
 * with a sentence.
 */
int attempt_send_workers(struct attempt *attempt, const struct config *config,
                         const struct job_env *job,
                         const struct node_place *place,
                         struct run_files *files, int guard_fd,
                         struct err *err);

/* Forget the workers, which must be gone. */
void attempt_end(struct attempt *attempt);

#endif
