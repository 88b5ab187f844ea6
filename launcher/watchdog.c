#include "launcher/watchdog.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct watchdog_timer *find(struct watchdog *watchdog,
                                   const struct watchdog_timer *timer)
{
    size_t i;

    for (i = 0; i < watchdog->n; i++) {
        if (watchdog->timers[i].pid == timer->pid &&
            strcmp(watchdog->timers[i].scope, timer->scope) == 0) {
            return &watchdog->timers[i];
        }
    }
    return NULL;
}

static void take_off(struct watchdog *watchdog, struct watchdog_timer *timer)
{
    *timer = watchdog->timers[--watchdog->n];
}

static int add(struct watchdog *watchdog, const struct watchdog_timer *timer,
               struct err *err)
{
    if (watchdog->n == WATCHDOG_TIMERS_MAX) {
        return err_set(err, -ENOSPC,
                       "process %d sets a timer beyond the %d that we keep",
                       (int)timer->pid, WATCHDOG_TIMERS_MAX);
    }
    if (watchdog->n == watchdog->cap) {
        size_t cap = watchdog->cap != 0 ? 2 * watchdog->cap : 16;
        struct watchdog_timer *timers =
            realloc(watchdog->timers, cap * sizeof(*timers));

        if (timers == NULL) {
            return err_sys(err, -ENOMEM, "cannot keep a timer of process %d",
                           (int)timer->pid);
        }
        watchdog->timers = timers;
        watchdog->cap = cap;
    }
    watchdog->timers[watchdog->n++] = *timer;
    return 0;
}

/* 0 or -EINVAL. */
static int read_request(const json_t *request, struct watchdog_timer *timer)
{
    const json_t *pid = json_object_get(request, "pid");
    const json_t *signo = json_object_get(request, "signal");
    const json_t *expires = json_object_get(request, "expiration_time");
    const char *scope = json_string_value(json_object_get(request, "scope_id"));

    if (json_integer_value(json_object_get(request, "version")) != 1 ||
        json_integer_value(pid) < 1 || json_integer_value(pid) > INT_MAX ||
        !json_is_number(expires) || !isfinite(json_number_value(expires)) ||
        !json_is_integer(signo) || json_integer_value(signo) >= NSIG ||
        scope == NULL) {
        return -EINVAL;
    }
    *timer = (struct watchdog_timer){
        .pid = (pid_t)json_integer_value(pid),
        .expires_s = json_number_value(expires),
    };
    if (json_integer_value(signo) > 0) {
        timer->signo = (int)json_integer_value(signo);
    }
    (void)snprintf(timer->scope, sizeof(timer->scope), "%s", scope);
    return 0;
}

int watchdog_take(struct watchdog *watchdog, const char *line, size_t len,
                  struct err *err)
{
    json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
    struct watchdog_timer timer;
    struct watchdog_timer *old;
    int rc = request != NULL ? read_request(request, &timer) : -EINVAL;

    json_decref(request);
    if (rc < 0) {
        return err_set(err, rc, "\"%.*s\" is no request for a timer",
                       (int)(len < 64 ? len : 64), line);
    }
    old = find(watchdog, &timer);
    if (timer.expires_s < 0) {
        if (old != NULL) {
            take_off(watchdog, old);
        }
        return 0;
    }
    if (old != NULL) {
        *old = timer;
        return 0;
    }
    return add(watchdog, &timer, err);
}

bool watchdog_next(const struct watchdog *watchdog, double *expires_s_out)
{
    size_t i;

    for (i = 0; i < watchdog->n; i++) {
        if (i == 0 || watchdog->timers[i].expires_s < *expires_s_out) {
            *expires_s_out = watchdog->timers[i].expires_s;
        }
    }
    return watchdog->n > 0;
}

/* Which of two expired timers of a process tells what to do. */
static bool is_better(const struct watchdog_timer *timer,
                      const struct watchdog_timer *than)
{
    if ((timer->signo > 0) != (than->signo > 0)) {
        return timer->signo > 0;
    }
    return timer->expires_s < than->expires_s;
}

bool watchdog_expired(struct watchdog *watchdog, double now_s,
                      struct watchdog_timer *timer_out)
{
    struct watchdog_timer best = { .pid = 0 };
    size_t i;

    for (i = 0; i < watchdog->n; i++) {
        const struct watchdog_timer *timer = &watchdog->timers[i];

        if (timer->expires_s <= now_s &&
            (best.pid == 0 ||
             (timer->pid == best.pid && is_better(timer, &best)))) {
            best = *timer;
        }
    }
    if (best.pid == 0) {
        return false;
    }
    for (i = watchdog->n; i > 0; i--) {
        if (watchdog->timers[i - 1].pid == best.pid) {
            take_off(watchdog, &watchdog->timers[i - 1]);
        }
    }
    *timer_out = best;
    return true;
}

void watchdog_clear(struct watchdog *watchdog)
{
    free(watchdog->timers);
    *watchdog = (struct watchdog){ 0 };
}
