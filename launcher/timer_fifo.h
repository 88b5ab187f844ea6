/*
 * torchrun's watchdog: workers write requests for timers into a FIFO, on libuv.
 *
 * Life: timer_fifo_start, timer_fifo_stop; the handles close with the loop.
 */
#ifndef FLAUNCH_LAUNCHER_TIMER_FIFO_H
#define FLAUNCH_LAUNCHER_TIMER_FIFO_H

#include "launcher/watchdog.h"

#include <uv.h>

struct timer_fifo {
    uv_poll_t poll;
    uv_timer_t timer;
    int fd;
    bool started;
    struct watchdog watchdog;
    char line[WATCHDOG_LINE_MAX];
    size_t len;
    bool skipping; /* the rest of a line that is too long */
    void (*expired)(const struct watchdog_timer *timer, void *arg);
    void *arg;
};

/*
 * The name of a new FIFO: that of TORCHELASTIC_TIMER_FILE, else one in TMPDIR.
 * NULL without memory; to be freed.
 */
char *timer_fifo_name(void);

/* Make it, for us alone (0600); an older FIFO gives way. 0 or a negative errno
 * with a sentence. */
int timer_fifo_make(const char *path, struct err *err);

/*
 * Read what workers write there; expired(timer, arg) runs for each process of
 * which a timer has expired. 0 or a negative errno with a sentence.
 */
int timer_fifo_start(struct timer_fifo *fifo, uv_loop_t *loop, const char *path,
                     void (*expired)(const struct watchdog_timer *timer,
                                     void *arg),
                     void *arg, struct err *err);

/* The workers that set timers are gone. */
void timer_fifo_forget(struct timer_fifo *fifo);

/* May be called without a start. */
void timer_fifo_stop(struct timer_fifo *fifo);

#endif
