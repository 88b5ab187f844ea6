/*
 * The environment of the workers: what they share, and what differs.
 */
#ifndef FLAUNCH_LAUNCHER_WORKER_ENV_H
#define FLAUNCH_LAUNCHER_WORKER_ENV_H

#include "launcher/ranks.h"

#include <stdbool.h>
#include <stddef.h>

/* What all workers of an attempt have in common. */
struct job_env {
    const char *master_addr;
    uint16_t master_port;
    const char *role;
    const char *run_id;
    const char *signals;    /* that stop the job, as given */
    const char *timer_file; /* the watchdog's FIFO, or NULL */
    uint32_t attempt;       /* restarts used up so far, by the whole job */
    uint32_t round;         /* counted from 1; each is an attempt of its own */
    uint32_t max_restarts;
    uint32_t omp_num_threads; /* 0: leave OMP_NUM_THREADS as it is */
    bool own_gpus;            /* CUDA_VISIBLE_DEVICES is each worker's own */
    bool keep_env;            /* leave outer launchers' variables */
};

/* A list of "NAME=value", NULL at its end; free with env_list_destroy. */
struct env_list {
    char **strings;
    size_t n;
    size_t cap;
};

/*
 * The shared part: inherited (as environ) without what outer launchers,
 * FLAUNCH_OPT_* and PET_* left in it, and with the job's variables. 0 or
 * -ENOMEM.
 */
int worker_env_shared(char *const *inherited, const struct job_env *job,
                      struct env_list *list_out);

/*
 * What is this worker's own.
 *
 * error_file  or NULL: nowhere
 * gpu         all that it sees of CUDA_VISIBLE_DEVICES, and its LOCAL_RANK is 0
 *             then (--virtual-local-rank); or NULL
 *
 * 0 or -ENOMEM.
 */
int worker_env_own(const struct place *place, const char *error_file,
                   const char *gpu, struct env_list *list_out);

/* Whether a variable is a record of an outer launcher, or one of our options.
 */
bool worker_env_is_scrubbed(const char *name, size_t len);

void env_list_destroy(struct env_list *list);

#endif
