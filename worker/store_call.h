/*
 * One call of a store's client: a request is put together, sent, and its reply
 * read; for store_client*.c only. Who finds the connection of no more use
 * closes it and says so, once.
 */
#ifndef FLAUNCH_WORKER_STORE_CALL_H
#define FLAUNCH_WORKER_STORE_CALL_H

#include "common/store_proto.h"
#include "worker/store_client.h"
#include "worker/store_reply.h"

/* What a store does at once takes no longer: to answer CANCEL_WAIT, to be
 * connected to again. */
#define STORE_AT_ONCE_MS 5000

/* A call under way; key is for what is said, and may be NULL. */
struct store_call {
    struct store_client *client;
    enum store_op op;
    const char *key;
    uint64_t deadline_ms;
    struct err *err;
};

/* Connect, after store_client_close or for the first time. */
int store_call_dial(struct store_client *client, bool patiently,
                    uint64_t deadline_ms, struct err *err);

/* Begin: the first request of the call, up to its opcode. With _key also the
 * key, with _also a further request behind it, in the same write. */
int store_call_begin(const struct store_call *call);
int store_call_begin_key(const struct store_call *call);
int store_call_also(const struct store_call *call, enum store_op op);

/* Fields. */
int store_call_put_key(const struct store_call *call, const char *key);
int store_call_put_u64(const struct store_call *call, uint64_t value);
int store_call_put_value(const struct store_call *call, struct bytes value);

/* A count, that many keys, and with each its value where values is not NULL. */
int store_call_put_keys(const struct store_call *call, const char *const *keys,
                        const struct bytes *values, size_t n);

int store_call_send(const struct store_call *call);

/* Some bytes more of what is answered; nothing is said, nothing closed. */
int store_call_receive_some(const struct store_call *call,
                            uint64_t deadline_ms);

/* A whole reply and no byte more; nothing is said, nothing closed. */
int store_call_receive_quietly(const struct store_call *call,
                               struct store_reply *reply,
                               enum store_reply_kind kind, uint64_t n_strings,
                               uint64_t deadline_ms);

/* Receive, or the connection is lost. */
int store_call_receive(const struct store_call *call, struct store_reply *reply,
                       enum store_reply_kind kind, uint64_t n_strings);

/* Send, and receive. */
int store_call_exchange(const struct store_call *call,
                        struct store_reply *reply, enum store_reply_kind kind,
                        uint64_t n_strings);

/* The string at *at of the reply, as the caller's own. */
int store_call_take_string(const struct store_call *call, size_t *at,
                           struct buf *out);

/* Close the connection for rc, and say so; returns rc. */
int store_call_lost(const struct store_call *call, int rc);

/*
 * The same of a request that not every server knows: one that does not closes
 * the connection. Where it can be reached again that was the reason:
 * -ENOTSUP, and the client is connected.
 */
int store_call_lost_or_unknown(const struct store_call *call, int rc,
                               const char *since);

/* Seconds since the call began. */
double store_call_seconds(const struct store_call *call);

/*
 * Take a WAIT or BARRIER back. The server answers "cancelled", or, where it
 * ended at the same moment, "ready" and then "cancelled". Dialect A cannot:
 * there it takes a new connection.
 */
int store_call_cancel(const struct store_call *call);

#endif
