#include "launcher/limits.h"

#include "common/log.h"

#include <stdio.h>

/* When it is first said that ranks still run after one has ended well. */
#define SPREAD_FIRST_MS 30000

static void time_is_up(uv_timer_t *timer)
{
    struct limits *limits = timer->data;
    char why[64];

    (void)snprintf(why, sizeof(why), "--timeout=%g is over",
                   (double)limits->config->timeout_ms / 1000);
    limits->expired(why, limits->arg);
}

/*
 * Some ranks have ended well and others go on: right for many jobs, and for
 * others a sign that they wait for ever.
 */
static void spread_goes_on(uv_timer_t *timer)
{
    struct limits *limits = timer->data;
    char running[128];
    char why[256];

    worker_group_list_running(limits->group, running, sizeof(running));
    if (limits->config->spread_ms > 0) {
        (void)snprintf(why, sizeof(why),
                       "--max-spread=%g is over and rank %s still runs",
                       (double)limits->config->spread_ms / 1000, running);
        limits->expired(why, limits->arg);
        return;
    }
    log_line(LOG_INFO, "the first rank ended %g s ago; still running: rank %s",
             (double)limits->said_ms / 1000, running);
    (void)uv_timer_start(timer, spread_goes_on, limits->said_ms, 0);
    limits->said_ms *= 2;
}

void limits_start(struct limits *limits, uv_loop_t *loop,
                  const struct config *config, const struct worker_group *group,
                  void (*expired)(const char *why, void *arg), void *arg)
{
    limits->config = config;
    limits->group = group;
    limits->expired = expired;
    limits->arg = arg;
    (void)uv_timer_init(loop, &limits->job);
    (void)uv_timer_init(loop, &limits->spread);
    limits->job.data = limits;
    limits->spread.data = limits;
    if (config->timeout_ms > 0) {
        (void)uv_timer_start(&limits->job, time_is_up, config->timeout_ms, 0);
    }
}

void limits_rank_done(struct limits *limits)
{
    uint64_t spread_ms = limits->config->spread_ms;

    if (limits->group->n_running == 0 ||
        uv_is_active((uv_handle_t *)&limits->spread)) {
        return;
    }
    limits->said_ms = SPREAD_FIRST_MS;
    (void)uv_timer_start(&limits->spread, spread_goes_on,
                         spread_ms > 0 ? spread_ms : SPREAD_FIRST_MS, 0);
}

void limits_attempt_over(struct limits *limits)
{
    (void)uv_timer_stop(&limits->spread);
}

void limits_stop(struct limits *limits)
{
    uv_close((uv_handle_t *)&limits->job, NULL);
    uv_close((uv_handle_t *)&limits->spread, NULL);
}
