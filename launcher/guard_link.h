/*
 * The agent's end of the pair to the guard, on libuv.
 *
 * Life: guard_link_start, guard_link_stop, on_closed.
 */
#ifndef FLAUNCH_LAUNCHER_GUARD_LINK_H
#define FLAUNCH_LAUNCHER_GUARD_LINK_H

#include "launcher/guard_pair.h"

#include <uv.h>

struct guard_link;

struct guard_link_events {
    /* One message came; with SPAWNED its descriptors, the receiver's now. */
    void (*message)(const struct guard_msg *msg, const int *fds, void *arg);
    /* The guard's end is closed: it has left, or it is dead. Runs once. */
    void (*ended)(void *arg);
    void (*closed)(void *arg);
};

struct guard_link {
    uv_poll_t poll;
    int fd;
    bool ended;
    bool stopping;
    struct guard_outbox out;
    const struct guard_link_events *events;
    void *arg;
    struct guard_packet packet;
};

/*
 * Watch fd, which stays the caller's until closed() has run.
 *
 * Returns 0 or a negative errno; then only closed() may come, and it does
 * when the handle was made (link->poll.data is set).
 */
int guard_link_start(struct guard_link *link, uv_loop_t *loop, int fd,
                     const struct guard_link_events *events, void *arg);

/* Send a message; it is queued where the socket is full. 0 or an errno. */
int guard_link_send(struct guard_link *link, const struct guard_msg *msg);

/* Begin to close; may be called twice, and before a start. */
void guard_link_stop(struct guard_link *link);

#endif
