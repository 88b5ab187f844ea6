/*
 * All local workers: who runs, who ended how, who failed first. Plain data;
 * what happened comes in as the guard's messages.
 */
#ifndef FLAUNCH_LAUNCHER_WORKER_GROUP_H
#define FLAUNCH_LAUNCHER_WORKER_GROUP_H

#include "launcher/guard_proto.h"

#include <stdbool.h>
#include <sys/types.h>

enum worker_state {
    WORKER_WAITING, /* not started */
    WORKER_RUNNING,
    WORKER_EXITED, /* wait_status counts */
    WORKER_FAILED, /* it never became its program: step and error count */
};

struct worker {
    enum worker_state state;
    bool overdue;       /* a timer of its own has expired */
    bool stopped_by_us; /* it was running when we stopped the group */
    uint32_t pid;
    int wait_status;
    uint32_t step; /* enum guard_step */
    uint32_t error;
    uint64_t started_ns;
    uint64_t ended_ns;
    uint64_t peak_kib;
};

#define WORKER_NONE UINT32_MAX

struct worker_group {
    struct worker *workers;
    uint32_t n;
    uint32_t base_rank; /* the rank of the first, for words */
    uint64_t stop_ns;   /* when we began to stop it; 0: not */
    uint32_t n_running;
    uint32_t n_done;        /* exited or failed */
    uint32_t n_stopped;     /* were running when we stopped the group */
    uint32_t first_failure; /* WORKER_NONE: none yet */
};

/* Whether it has exited with 0, and in time. */
bool worker_ended_well(const struct worker *worker);

/* 0 or -ENOMEM. */
int worker_group_init(struct worker_group *group, uint32_t n);

/*
 * Take in SPAWNED, FAILED or EXITED. Returns true for the first failure: stop
 * the others then. A worker that ends badly after worker_group_stopped is no
 * failure of its own.
 */
bool worker_group_take(struct worker_group *group, const struct guard_msg *msg);

/*
 * The group is being stopped, or more so, at now_ns (monotonic): whoever runs
 * is stopped by us, and so is whoever the guard had started when it heard of
 * the stop. Who turns out to have ended before the first stop is not.
 */
void worker_group_stopped(struct worker_group *group, uint64_t now_ns);

/* Which ranks run, counted over all nodes: "1", "0, 2, 3", cut with "..." where
 * size is short. */
void worker_group_list_running(const struct worker_group *group, char *text_out,
                               size_t size);

/* The pids of those that run, to be freed. 0 or -ENOMEM. */
int worker_group_running_pids(const struct worker_group *group,
                              pid_t **pids_out, uint32_t *n_out);

void worker_group_destroy(struct worker_group *group);

#endif
