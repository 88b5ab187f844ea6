/*
 * The time limits of a job: --timeout for the whole, --max-spread from the
 * first rank that ends well to the last. Without a limit on the spread it is
 * said, ever more seldom, that ranks still run.
 *
 * Life: limits_start, limits_stop; the timers close with the loop.
 */
#ifndef FLAUNCH_LAUNCHER_LIMITS_H
#define FLAUNCH_LAUNCHER_LIMITS_H

#include "launcher/config.h"
#include "launcher/worker_group.h"

#include <uv.h>

struct limits {
    uv_timer_t job;
    uv_timer_t spread;
    uint64_t said_ms; /* the next word on the spread, after the first end */
    const struct config *config;
    const struct worker_group *group;
    /* A limit is over; why is a sentence that lives for this call. */
    void (*expired)(const char *why, void *arg);
    void *arg;
};

/* Begin; group is that of whatever attempt runs. */
void limits_start(struct limits *limits, uv_loop_t *loop,
                  const struct config *config, const struct worker_group *group,
                  void (*expired)(const char *why, void *arg), void *arg);

/* A rank has ended well while others run. */
void limits_rank_done(struct limits *limits);

/* The attempt is over: its spread counts no more. */
void limits_attempt_over(struct limits *limits);

void limits_stop(struct limits *limits);

#endif
