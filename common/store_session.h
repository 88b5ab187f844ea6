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
#include "common/err.h"
#include "common/store.h"
#include "common/store_proto.h"

/* Replies a client has not read: from here on its requests wait. */
#define STORE_OUT_HIGH ((size_t)1024 * 1024)
/* One reply, and all that is unread together: above it the session ends. */
#define STORE_OUT_MAX ((size_t)64 * 1024 * 1024)

struct store_session {
    struct store *store;
    struct store_parser parser;
    struct store_waiter waiter;
    struct store_watcher watcher;
    struct buf in;  /* an unfinished request, and what waits behind it */
    size_t charged; /* of in and parser, to the store */
    bool have_dialect;
    bool validated;
    int late_error; /* what wake could not say; see there */
    /*
     * Where replies go; the owner sets it, and takes them out. What other
     * sessions cause (a WAIT that ends) is appended at any time.
     */
    struct buf *out;
    void (*wake)(void *arg);
    void *arg;
};

/*
 * Begin. wake(arg) runs when out has grown, or late_error was set (a negative
 * errno: the session has ended), by another session's doing; it must not feed
 * or destroy any session.
 */
void store_session_init(struct store_session *session, struct store *store,
                        struct buf *out, void (*wake)(void *arg), void *arg);

/*
 * Take bytes that came from the client. With none, go on with requests that
 * waited until out was taken; store_session_is_held tells whether there may be
 * some.
 *
 * Returns 0, or a negative errno with a sentence: the session has ended; what
 * is in out may still be sent, then the connection is to be closed. -EPROTO:
 * not a store client, or an unknown request; -EMSGSIZE, -EDQUOT, -ENOSPC,
 * -ENOBUFS: over a limit; -EINVAL, -ERANGE: ADD on what is not a number;
 * -ENOMEM.
 */
int store_session_feed(struct store_session *session, const uint8_t *data,
                       size_t len, struct err *err);

/* Whether out is so full that no request is served. */
bool store_session_is_held(const struct store_session *session);

/*
 * Whether silence would decide what the last bytes mean; after STORE_GRACE_MS
 * of it call store_session_settle, and feed with no bytes.
 */
bool store_session_undecided(const struct store_session *session);
void store_session_settle(struct store_session *session);

/* Forget a pending wait and free the memory. */
void store_session_destroy(struct store_session *session);

#endif
