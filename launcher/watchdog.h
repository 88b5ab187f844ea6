/*
 * Timers that workers set for themselves, as torchrun's file timer has them;
 * pure, time is passed in.
 *
 * A request is one line of JSON: version, pid, scope_id, expiration_time (Unix
 * seconds; negative: release), signal.
 * Source: torch/distributed/elastic/timer/file_based_local_timer.py.
 */
#ifndef FLAUNCH_LAUNCHER_WATCHDOG_H
#define FLAUNCH_LAUNCHER_WATCHDOG_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define WATCHDOG_LINE_MAX 4096 /* PIPE_BUF: more is not written at once */
#define WATCHDOG_TIMERS_MAX 4096
#define WATCHDOG_SCOPE_MAX 128 /* of a scope's name we keep so much */

struct watchdog_timer {
    pid_t pid; /* as the process knows itself */
    int signo; /* 0: nothing is sent */
    double expires_s;
    char scope[WATCHDOG_SCOPE_MAX];
};

/* Zero-initialise. */
struct watchdog {
    struct watchdog_timer *timers;
    size_t n;
    size_t cap;
};

/*
 * Take a line, without its newline. Returns 0; -EINVAL for what is no request,
 * -ENOSPC where there are too many timers, or -ENOMEM, with a sentence.
 */
int watchdog_take(struct watchdog *watchdog, const char *line, size_t len,
                  struct err *err);

/* When the next timer expires; false where there is none. */
bool watchdog_next(const struct watchdog *watchdog, double *expires_s_out);

/*
 * Take off a process of which a timer has expired, with all of its timers: the
 * earliest with a signal. False where none has.
 */
bool watchdog_expired(struct watchdog *watchdog, double now_s,
                      struct watchdog_timer *timer_out);

/* Forget all timers. */
void watchdog_clear(struct watchdog *watchdog);

#endif
