/*
 * Who started this process; pure, over an environment passed in.
 *
 * A record of rank, size, local rank and local size is taken whole from one
 * launcher, never completed from another; the innermost launcher wins.
 */
#ifndef FLAUNCH_WORKER_DETECT_H
#define FLAUNCH_WORKER_DETECT_H

#include "worker/flaunch.h"

#include <stdbool.h>

enum launcher {
    LAUNCHER_NONE, /* a job of one */
    LAUNCHER_FLAUNCH,
    LAUNCHER_TORCHRUN,
    LAUNCHER_ENV, /* RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT by hand */
};

struct detected {
    enum launcher launcher;
    int rank;
    int world_size;
    int local_rank;
    int local_world_size;
    char host[256]; /* of the store; "" for a job of one */
    uint16_t port;
    bool agent_store; /* the launcher serves it; else rank 0 must */
    char explanation[2048];
};

/* The environment: a value or NULL. */
typedef const char *detect_env_fn(const char *name, void *arg);

/*
 * wanted  a launcher's name that must be the one, or NULL
 *
 * Returns 0, or -EINVAL with a sentence that names the variables.
 */
int detect(detect_env_fn *env, void *arg, const char *wanted,
           struct detected *detected_out, struct flaunch_error *error);

/* "flaunch", "torchrun", "env", "none" */
const char *launcher_name(enum launcher launcher);

#endif
