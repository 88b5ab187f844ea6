/*
 * Requests that came late to PyTorch, so that a server may not know them.
 */
#include "worker/store_call.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Send, and receive; since says which servers know the request. */
static int exchange_maybe(const struct store_call *call,
                          struct store_reply *reply, enum store_reply_kind kind,
                          const char *since)
{
    int rc = store_call_send(call);

    if (rc < 0) {
        return rc;
    }
    rc = store_call_receive_quietly(call, reply, kind, 0, call->deadline_ms);
    return rc < 0 ? store_call_lost_or_unknown(call, rc, since) : 0;
}

/* The strings of a list that begin with "/", in one block of memory. */
static int names_copy(const struct store_call *call,
                      const struct store_reply *reply, char ***keys_out,
                      size_t *n_out)
{
    const uint8_t *data = call->client->in.data;
    /* Each string has eight bytes of length, where its pointer and its NUL
     * find room as well. */
    char **keys =
        malloc((size_t)reply->n_strings * sizeof(char *) + reply->pos + 1);
    char *text;
    size_t at = reply->first;
    size_t n = 0;
    uint64_t i;

    if (keys == NULL) {
        return err_sys(call->err, -ENOMEM, "store reply");
    }
    text = (char *)(keys + reply->n_strings);
    for (i = 0; i < reply->n_strings; i++) {
        struct bytes name = store_reply_string(data, &at);

        if (name.len == 0 || name.data[0] != '/') {
            continue;
        }
        memcpy(text, name.data + 1, name.len - 1);
        text[name.len - 1] = '\0';
        keys[n++] = text;
        text += name.len;
    }
    *keys_out = keys;
    *n_out = n;
    return 0;
}

int store_client_list_keys(struct store_client *client, uint64_t deadline_ms,
                           char ***keys_out, size_t *n_out, struct err *err)
{
    const struct store_call call = { client, STORE_OP_LIST_KEYS, NULL,
                                     deadline_ms, err };
    struct store_reply reply = { .n_strings = 0 };
    int rc = store_call_begin(&call);

    if (rc == 0) {
        rc = exchange_maybe(&call, &reply, STORE_REPLY_LIST,
                            "PyTorch 2.10 or later has it");
    }
    return rc < 0 ? rc : names_copy(&call, &reply, keys_out, n_out);
}

int store_client_ping(struct store_client *client, uint32_t nonce,
                      uint64_t deadline_ms, struct err *err)
{
    const struct store_call call = { client, STORE_OP_PING, NULL, deadline_ms,
                                     err };
    struct store_reply reply = { .n_strings = 0 };
    int rc = store_call_begin(&call);

    if (rc == 0 && buf_append_u32(&client->out, nonce) < 0) {
        rc = err_sys(err, -ENOMEM, "store request");
    }
    if (rc == 0) {
        rc = exchange_maybe(&call, &reply, STORE_REPLY_U32,
                            "PyTorch 2.5 or later has it");
    }
    if (rc == 0 && (uint32_t)reply.number != nonce) {
        rc = store_call_lost(&call, -EPROTO);
    }
    return rc;
}

static const char queues_since[] =
    "PyTorch 2.8 or later has it, with its libuv backend";

/*
 * QUEUE_PUSH has no answer: QUEUE_LEN behind it tells whether the server knows
 * of queues.
 */
int store_client_queue_push(struct store_client *client, const char *key,
                            struct bytes value, uint64_t deadline_ms,
                            struct err *err)
{
    const struct store_call call = { client, STORE_OP_QUEUE_PUSH, key,
                                     deadline_ms, err };
    struct store_reply reply = { .n_strings = 0 };
    int rc = store_call_begin_key(&call);

    if (rc == 0) {
        rc = store_call_put_value(&call, value);
    }
    if (rc == 0) {
        rc = store_call_also(&call, STORE_OP_QUEUE_LEN);
    }
    if (rc == 0) {
        rc = store_call_put_key(&call, key);
    }
    return rc < 0 ? rc
                  : exchange_maybe(&call, &reply, STORE_REPLY_NUMBER,
                                   queues_since);
}

int store_client_queue_pop(struct store_client *client, const char *key,
                           bool wait, uint64_t deadline_ms,
                           struct buf *value_out, struct err *err)
{
    const struct store_call call = { client, STORE_OP_QUEUE_POP, key,
                                     deadline_ms, err };
    struct store_reply reply = { .n_strings = 0 };
    size_t at;
    int rc = wait ? store_client_wait(client, key, deadline_ms, err) : 0;

    if (rc == 0) {
        rc = store_call_begin_key(&call);
    }
    if (rc == 0) {
        rc = exchange_maybe(&call, &reply, STORE_REPLY_POP, queues_since);
    }
    if (rc < 0) {
        return rc;
    }
    if (reply.n_strings == 0) {
        return err_set(err, -ENODATA, "store %s port %u: queue %s is empty",
                       client->host, client->port, key);
    }
    at = reply.first;
    return store_call_take_string(&call, &at, value_out);
}

int store_client_queue_len(struct store_client *client, const char *key,
                           uint64_t deadline_ms, int64_t *n_out,
                           struct err *err)
{
    const struct store_call call = { client, STORE_OP_QUEUE_LEN, key,
                                     deadline_ms, err };
    struct store_reply reply = { .n_strings = 0 };
    int rc = store_call_begin_key(&call);

    if (rc == 0) {
        rc = exchange_maybe(&call, &reply, STORE_REPLY_NUMBER, queues_since);
    }
    if (rc == 0) {
        *n_out = reply.number;
    }
    return rc;
}

/* As PyTorch's PrefixStore: count, and the last one opens. */
static int barrier_of_keys(const struct store_call *call, int64_t world_size)
{
    struct store_client *client = call->client;
    char key[STORE_KEY_MAX];
    const struct bytes one = { .data = (const uint8_t *)"1", .len = 1 };
    int64_t n;
    int rc;

    (void)snprintf(key, sizeof(key), "%s/num_members", call->key);
    rc = store_client_add(client, key, 1, call->deadline_ms, &n, call->err);
    (void)snprintf(key, sizeof(key), "%s/last_member", call->key);
    if (rc == 0 && n >= world_size) {
        rc = store_client_set(client, key, one, call->deadline_ms, call->err);
    }
    return rc < 0
               ? rc
               : store_client_wait(client, key, call->deadline_ms, call->err);
}

static int barrier_timed_out(const struct store_call *call, int64_t world_size)
{
    double seconds = store_call_seconds(call);
    int rc = store_call_cancel(call);

    return rc < 0 ? rc
                  : err_set(call->err, -ETIMEDOUT,
                            "store %s port %u: waited %.1f s in vain for "
                            "%" PRId64 " clients at barrier %s",
                            call->client->host, call->client->port, seconds,
                            world_size, call->key);
}

/* The server has closed on a BARRIER: it knows none, or the key is no counter.
 */
static int barrier_otherwise(const struct store_call *call, int64_t world_size)
{
    struct store_client *client = call->client;
    bool exists = false;
    int rc = store_client_check(client, call->key, call->deadline_ms, &exists,
                                call->err);

    if (rc == 0 && exists) {
        return err_set(call->err, -EINVAL,
                       "store %s port %u: what is at barrier %s is no number",
                       client->host, client->port, call->key);
    }
    return rc < 0 ? rc : barrier_of_keys(call, world_size);
}

int store_client_barrier(struct store_client *client, const char *key,
                         int64_t world_size, uint64_t deadline_ms,
                         struct err *err)
{
    const struct store_call call = { client, STORE_OP_BARRIER, key, deadline_ms,
                                     err };
    struct store_reply reply = { .n_strings = 0 };
    int rc;

    if (store_opcode(client->dialect, STORE_OP_BARRIER) < 0) {
        return barrier_of_keys(&call, world_size);
    }
    rc = store_call_begin_key(&call);
    if (rc == 0) {
        rc = store_call_put_u64(&call, (uint64_t)world_size);
    }
    if (rc == 0) {
        rc = store_call_send(&call);
    }
    if (rc < 0) {
        return rc;
    }
    rc = store_call_receive_quietly(&call, &reply, STORE_REPLY_CODE, 0,
                                    deadline_ms);
    if (rc == -ETIMEDOUT) {
        return barrier_timed_out(&call, world_size);
    }
    if (rc == 0 && reply.number != STORE_STOP_WAITING) {
        rc = -EPROTO;
    }
    if (rc == 0) {
        return 0;
    }
    rc = store_call_lost_or_unknown(&call, rc, "PyTorch 2.12 or later has it");
    return rc == -ENOTSUP ? barrier_otherwise(&call, world_size) : rc;
}
