/*
 * One attempt of the job on this node: its workers and its store.
 */
#ifndef FLAUNCH_LAUNCHER_ATTEMPT_H
#define FLAUNCH_LAUNCHER_ATTEMPT_H

#include "common/store_host.h"
#include "launcher/config.h"
#include "launcher/stream_plan.h"
#include "launcher/worker_group.h"

/* Zero-initialise; attempt_end makes it so again. */
struct attempt {
    struct worker_group group;
    struct stream_plan plan;
    char **error_files; /* one for each worker, or NULL */
    struct store_host *store;
    uint64_t began_ms;
};

/* Where the files of a run are; either may be missing. */
struct run_files {
    struct log_dir log;
    char *run_dir; /* for error files, where there are no logs */
};

/*
 * Make the directories and files of an attempt, and hand the guard, over its
 * end of the pair, what to start. 0 or a negative errno, said on stderr.
 */
int attempt_send_workers(struct attempt *attempt, const struct config *config,
                         const struct job_env *job, struct run_files *files,
                         int guard_fd);

/*
 * Serve a store, empty as every attempt's: old keys would be believed. The
 * socket stays the caller's, so the port is the same for all attempts;
 * connections wait in its queue until then. 0 or a negative errno, said.
 */
int attempt_serve(struct attempt *attempt, int listen_fd);

/* End the store; how the workers ended is still known. */
void attempt_stop_store(struct attempt *attempt);

/* End the store and forget the workers, which must be gone. */
void attempt_end(struct attempt *attempt);

#endif
