/*
 * One client connection of the store, on libuv.
 *
 * Life: store_conn_start, store_conn_stop, on_closed. A session that ends by
 * the client's mistake, EOF or an error stops the connection by itself.
 *
 * A client gets one read each turn of the loop, so none can keep the others
 * waiting, and is not read from while it leaves many replies unread. An idle
 * connection holds this struct and no other memory.
 */
#ifndef FLAUNCH_COMMON_STORE_CONN_H
#define FLAUNCH_COMMON_STORE_CONN_H

#include "common/log_limit.h"
#include "common/port_demux.h"
#include "common/store_session.h"

#include <sys/queue.h>
#include <uv.h>

#define STORE_READ_MAX ((size_t)64 * 1024)

/* What all connections of a server share. */
struct store_shared {
    uv_loop_t *loop;
    struct store *store;
    const struct port_demux *demux; /* who takes agents, or NULL */
    struct buf replies;             /* of the read under way */
    struct log_limit complaints;
    void (*complain)(const char *text, void *arg); /* or NULL */
    void *complain_arg;
    uint8_t read_buffer[STORE_READ_MAX];
};

struct store_conn {
    uv_poll_t poll;
    uv_timer_t *timer; /* NULL until there is something to time */
    struct store_shared *shared;
    struct store_session session;
    struct buf unsent;
    size_t unsent_at; /* bytes of it that are sent */
    size_t charged;   /* of unsent, to the store */
    int fd;
    int events; /* what poll asks for */
    int open_handles;
    bool fresh;   /* nothing has come yet */
    bool feeding; /* replies go out when it is over */
    bool held;    /* requests wait until replies are read */
    bool eof;
    bool failed; /* nothing more is read; close when all is sent */
    bool stopping;
    void (*on_closed)(struct store_conn *conn, void *arg);
    void *arg;
    LIST_ENTRY(store_conn) all; /* the owner's */
};

/*
 * Serve the client at fd, a connected, non-blocking socket, which is the
 * connection's from this call on.
 *
 * Returns 0; or a negative errno, and then fd is closed and on_closed never
 * runs.
 */
int store_conn_start(struct store_conn *conn, struct store_shared *shared,
                     int fd,
                     void (*on_closed)(struct store_conn *conn, void *arg),
                     void *arg);

/* Begin to close; may be called twice. on_closed runs once, later. */
void store_conn_stop(struct store_conn *conn);

/* Say, if it is not said too often, what is wrong with the client at fd. */
void store_complain(struct store_shared *shared, int fd, const char *what);

/* "10.0.0.1:41234", "[fd00::1]:41234". */
void store_peer_text(int fd, char *text_out, size_t size);

#endif
