/*
 * What the streams of an attempt's workers are: made from the configuration
 * and the log directory, handed to the guard and to the agent's streams.
 */
#ifndef FLAUNCH_LAUNCHER_STREAM_PLAN_H
#define FLAUNCH_LAUNCHER_STREAM_PLAN_H

#include "launcher/log_config.h"
#include "launcher/log_dir.h"

struct stream_plan {
    uint32_t n_workers;
    struct guard_stream (*streams)[2]; /* for the guard */
    char **paths;                      /* 2 * n_workers; NULL: no file */
    char **headers;                    /* 2 * n_workers; NULL: none */
    char *filter_paths[2];             /* NULL: none */
    const struct log_config *config;
};

/* What prefixes and directories tell of the job. */
struct stream_job {
    uint32_t attempt;   /* restarts used up */
    uint32_t base_rank; /* of this node's first worker */
    const char *role;
};

/*
 * Plan an attempt, and make its directories and files where dir has a run.
 *
 * Returns 0 or a negative errno with a sentence.
 */
int stream_plan_make(const struct log_config *config, uint32_t n_workers,
                     const struct stream_job *job, struct log_dir *dir,
                     struct stream_plan *plan_out, struct err *err);

void stream_plan_destroy(struct stream_plan *plan);

#endif
