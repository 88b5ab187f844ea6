/*
 * One client connection of the store.
 *
 * Life: store_conn_start, store_conn_stop; its owner, a struct store_conns,
 * frees it from the loop. A session that ends by the client's mistake, EOF or
 * an error stops the connection by itself.
 *
 * A client gets one read before it is the others' turn, so none can keep them
 * waiting, and is not read from while it leaves many replies unread. An idle
 * connection holds this struct and no other memory.
 */
#ifndef FLAUNCH_COMMON_STORE_CONN_H
#define FLAUNCH_COMMON_STORE_CONN_H

#include "common/poll_set.h"
#include "common/store_session.h"

#include <sys/queue.h>

struct store_conns;

struct store_conn {
    struct poll_item item;
    struct store_conns *conns;
    struct store_session session;
    struct buf unsent;
    size_t unsent_at; /* bytes of it that are sent */
    size_t charged;   /* of unsent, to the store */
    bool fresh;       /* nothing has come yet */
    bool feeding;     /* replies go out when it is over */
    bool held;        /* requests wait until replies are read */
    bool eof;
    bool failed; /* nothing more is read; close when all is sent */
    bool stopping;
    /* The rest is store_conns': its lists, and when silence counts. */
    uint8_t silence;
    uint64_t silence_ms;
    LIST_ENTRY(store_conn) all;
    TAILQ_ENTRY(store_conn) silent;
};

/* Serve the client at fd, a connected, non-blocking socket, which is the
 * connection's from this call on. */
void store_conn_start(struct store_conn *conn, struct store_conns *conns,
                      int fd);

/* Close; may be called twice, and from any callback. */
void store_conn_stop(struct store_conn *conn);

/* The client was silent for STORE_GRACE_MS where that decides what it meant. */
void store_conn_settle(struct store_conn *conn);

#endif
