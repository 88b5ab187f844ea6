/*
 * One connection between an agent and the coordinator, on libuv: frames of
 * agent_proto both ways.
 *
 * Life: agent_link_adopt or agent_link_connect, agent_link_stop, on_closed.
 */
#ifndef FLAUNCH_LAUNCHER_AGENT_LINK_H
#define FLAUNCH_LAUNCHER_AGENT_LINK_H

#include "launcher/agent_proto.h"

#include <uv.h>

/* Bytes that the peer does not take, before it is given up. */
#define AGENT_LINK_UNSENT_MAX ((size_t)1024 * 1024)

struct agent_link;

struct agent_link_events {
    /* The connection is there and the peer speaks our language. */
    void (*ready)(struct agent_link *link, void *arg);
    void (*message)(struct agent_link *link, const struct agent_msg *msg,
                    void *arg);
    /*
     * It has ended by itself; why is a sentence: "its connection was closed".
     * Runs at most once, and only before agent_link_stop.
     */
    void (*ended)(struct agent_link *link, const char *why, void *arg);
    void (*closed)(struct agent_link *link, void *arg);
};

/* Shared by all links of a loop: bytes are looked at as they come. */
struct agent_link_buffer {
    char data[64 * 1024];
};

struct agent_link {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    struct agent_link_buffer *buffer;
    struct buf in;      /* a frame that is not complete */
    struct buf out;     /* not written yet */
    struct buf sending; /* what a uv_write under way has borrowed */
    bool writing;
    bool ready;     /* the peer's preface has come */
    bool finishing; /* stop when all is sent */
    bool ended;
    bool stopping;
    uint32_t peer_version;
    const struct agent_link_events *events;
    void *arg;
};

/*
 * Speak on fd, a connected socket, whose first bytes are read already. Both
 * prefaces and frames are sent on it.
 *
 * Returns 0, or a negative errno; fd belongs to the link in either case, and
 * closed comes in either case.
 */
int agent_link_adopt(struct agent_link *link, uv_loop_t *loop, int fd,
                     const uint8_t *head, size_t len,
                     struct agent_link_buffer *buffer,
                     const struct agent_link_events *events, void *arg);

/*
 * Connect. Returns 0, or a negative errno; closed comes in either case. A
 * connection that cannot be made is told by ended.
 */
int agent_link_connect(struct agent_link *link, uv_loop_t *loop,
                       const struct sockaddr *address,
                       struct agent_link_buffer *buffer,
                       const struct agent_link_events *events, void *arg);

/* Send a message; an error shows as the end. */
void agent_link_send(struct agent_link *link, const struct agent_msg *msg);

/* Stop when all that was sent is on its way. */
void agent_link_finish(struct agent_link *link);

/*
 * The same as agent_link_stop, but the peer is told at once (RST) also where
 * what was sent before does not reach it.
 */
void agent_link_reset(struct agent_link *link);

/* Begin to close; may be called twice, and from every callback. */
void agent_link_stop(struct agent_link *link);

#endif
