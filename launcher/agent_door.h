/*
 * Where connections of other agents come in: the store's thread, which
 * accepts all, hands them over to the agent's loop.
 *
 * Life: agent_door_open, agent_door_close, on_closed.
 */
#ifndef FLAUNCH_LAUNCHER_AGENT_DOOR_H
#define FLAUNCH_LAUNCHER_AGENT_DOOR_H

#include "common/port_demux.h"

#include <uv.h>

/* Connections that wait to be taken; more are closed, and try again. */
#define AGENT_DOOR_MAX 16384

struct agent_arrival {
    int fd;
    struct agent_arrival *next;
    size_t len;
    uint8_t head[]; /* what was read of it already */
};

struct agent_door {
    struct port_demux demux; /* for store_host_start */
    uv_async_t async;
    uv_mutex_t mutex;
    struct agent_arrival *first;
    struct agent_arrival **last;
    size_t n;
    bool closed;
    void (*come)(int fd, const uint8_t *head, size_t len, void *arg);
    void (*on_closed)(void *arg);
    void *arg;
};

/*
 * Open it. come runs in the loop for each connection, which is its own then.
 *
 * Returns 0 or a negative errno, and then on_closed never runs.
 */
int agent_door_open(struct agent_door *door, uv_loop_t *loop,
                    void (*come)(int fd, const uint8_t *head, size_t len,
                                 void *arg),
                    void (*on_closed)(void *arg), void *arg);

/* Close it, after the thread that hands over has ended. */
void agent_door_close(struct agent_door *door);

#endif
