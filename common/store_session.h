/*
 * One client's bytes: requests fed in, replies come out; no sockets.
 *
 * The dialect is found from the first bytes; requests may be cut anywhere and
 * may come many at once; replies keep their order, but for the byte that ends
 * a WAIT, which comes when it is due. One client's mistake is one client's:
 * the session ends, the store goes on. flaunch-store(7) has the rules.
 */
#ifndef FLAUNCH_COMMON_STORE_SESSION_H
#define FLAUNCH_COMMON_STORE_SESSION_H

#include "common/buf.h"
#include "common/store.h"
#include "common/store_proto.h"

/* Replies a client has not read yet; above it the session ends. */
#define STORE_OUT_MAX ((size_t)64 * 1024 * 1024)

struct store_session {
    struct store *store;
    struct store_parser parser;
    struct store_waiter waiter;
    struct buf in; /* the unfinished request */
    bool have_dialect;
    bool validated;
    /*
     * Replies to send. The owner takes them from the front with buf_consume.
     * Other sessions' requests may add to it (a WAIT that ends): wake tells.
     */
    struct buf out;
    void (*wake)(void *arg);
    void *arg;
};

/*
 * Begin. wake(arg) runs when out has grown by another session's doing, never
 * inside store_session_feed of this one; it must not feed or destroy any
 * session.
 */
void store_session_init(struct store_session *session, struct store *store,
                        void (*wake)(void *arg), void *arg);

/*
 * Take bytes that came from the client.
 *
 * Returns 0, or a negative errno: the session has ended; what is in out may
 * still be sent, then the connection is to be closed. -EPROTO: not a store
 * client, or an unknown request; -EMSGSIZE: over a limit of store_proto.h;
 * -EINVAL, -ERANGE: ADD on what is not a number; -ENOBUFS: replies unread;
 * -ENOSPC, -ENOMEM.
 */
int store_session_feed(struct store_session *session, const uint8_t *data,
                       size_t len);

/* Forget a pending wait and free the memory. */
void store_session_destroy(struct store_session *session);

#endif
