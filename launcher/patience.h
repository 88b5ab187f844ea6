/*
 * How long the end waits for a reader of our output that does not read: as
 * long as any program until somebody wants us to stop, then a while, and in
 * the end hardly at all.
 *
 * Life: patience_init, patience_close; the timer closes with the loop.
 */
#ifndef FLAUNCH_LAUNCHER_PATIENCE_H
#define FLAUNCH_LAUNCHER_PATIENCE_H

#include "launcher/streams.h"

/* Without progress, after a stop signal or a time limit. */
#define PATIENCE_MS 1000
/* After a second signal: enough for a reader that does read. */
#define PATIENCE_LAST_MS 50

struct patience {
    uv_timer_t timer;
    struct streams *streams;
    uint64_t written; /* when that was last looked at */
    void (*lost)(void *arg);
    void *arg;
};

/* lost runs when nothing was written for the time that was last given. */
void patience_init(struct patience *patience, uv_loop_t *loop,
                   struct streams *streams, void (*lost)(void *arg), void *arg);

/* Output is waited for: begin to count, anew where it was counted already. */
void patience_begin(struct patience *patience, uint64_t limit_ms);

void patience_end(struct patience *patience);

void patience_close(struct patience *patience);

#endif
