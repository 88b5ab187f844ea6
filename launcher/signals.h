/*
 * The launcher's own signals turned into events, on libuv.
 *
 * Life: signals_start, signals_stop, on_closed. A stop signal that was
 * ignored when flaunch started (nohup, background jobs of scripts) stays
 * ignored, but for TERM.
 */
#ifndef FLAUNCH_LAUNCHER_SIGNALS_H
#define FLAUNCH_LAUNCHER_SIGNALS_H

#include "launcher/inherited.h"

#include <uv.h>

#define SIGNALS_MAX 32

struct signals {
    uv_signal_t handles[SIGNALS_MAX];
    size_t n_handles;
    size_t n_open;
    bool stopping;
    void (*on_signal)(int signo, void *arg);
    void (*on_closed)(void *arg);
    void *arg;
};

/* Let all signals wait, until signals_start. */
void signals_hold(void);

/*
 * Begin to watch, and let signals come: TERM, CHLD, TSTP, CONT, WINCH, and
 * those of stop and forward, which end with 0.
 *
 * Returns 0 or a negative errno; on_closed runs in either case, once, after
 * signals_stop.
 */
int signals_start(struct signals *signals, uv_loop_t *loop,
                  const struct inherited *inherited, const int *stop,
                  const int *forward, void (*on_signal)(int signo, void *arg),
                  void (*on_closed)(void *arg), void *arg);

/* Begin to close; may be called twice. The signals are blocked from then on:
 * the process is about to end with a status of its own. */
void signals_stop(struct signals *signals);

#endif
