#include "worker/store_call.h"

#include "common/clock.h"
#include "worker/sock.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define READ_MIN ((size_t)4096)
#define BUF_KEPT ((size_t)1024 * 1024)

/* --- the connection --------------------------------------------------- */

int store_call_dial(struct store_client *client, bool patiently,
                    uint64_t deadline_ms, struct err *err)
{
    int fd = patiently ? store_dial_patiently(client->host, client->port,
                                              client->wanted, deadline_ms,
                                              &client->dialect, err)
                       : store_dial(client->host, client->port, client->wanted,
                                    deadline_ms, &client->dialect, err);

    if (fd < 0) {
        return fd;
    }
    client->fd = fd;
    client->n_requests += 2;
    /* Servers before 2.2 have but the one backend, which does that. */
    client->one_by_one |= client->dialect != STORE_DIALECT_D;
    return 0;
}

double store_call_seconds(const struct store_call *call)
{
    return (double)(clock_ms() - call->client->started_ms) / 1000;
}

int store_call_lost(const struct store_call *call, int rc)
{
    struct store_client *client = call->client;

    store_client_close(client);
    return err_sys(call->err, rc, "store %s port %u: %s%s%s, after %.1f s",
                   client->host, client->port, store_op_name(call->op),
                   call->key != NULL ? " of key " : "",
                   call->key != NULL ? call->key : "",
                   store_call_seconds(call));
}

int store_call_lost_or_unknown(const struct store_call *call, int rc,
                               const char *since)
{
    struct store_client *client = call->client;
    uint64_t soon_ms =
        clock_earlier(clock_deadline(STORE_AT_ONCE_MS), call->deadline_ms);

    (void)store_call_lost(call, rc);
    if ((rc == -ECONNRESET || rc == -EPIPE) &&
        store_call_dial(client, false, soon_ms, NULL) == 0) {
        return err_set(call->err, -ENOTSUP,
                       "store %s port %u: it knows no %s (%s)", client->host,
                       client->port, store_op_name(call->op), since);
    }
    return rc;
}

/* --- requests --------------------------------------------------------- */

/* Empty, and not so large as one value may have made it. */
static void buf_begin(struct buf *buf)
{
    if (buf->cap > BUF_KEPT) {
        buf_destroy(buf);
    }
    buf->len = 0;
}

int store_call_begin(const struct store_call *call)
{
    struct store_client *client = call->client;
    int code = store_opcode(client->dialect, call->op);

    if (client->fd < 0) {
        return err_set(call->err, -ENOTCONN, "store %s port %u: not connected",
                       client->host, client->port);
    }
    if (code < 0) {
        return err_set(call->err, -ENOTSUP,
                       "store %s port %u: its release has no %s", client->host,
                       client->port, store_op_name(call->op));
    }
    client->started_ms = clock_ms();
    buf_begin(&client->out);
    buf_begin(&client->in);
    return buf_append_u8(&client->out, (uint8_t)code) < 0
               ? err_sys(call->err, -ENOMEM, "store request")
               : 0;
}

/* A further request in the same write. */
int store_call_also(const struct store_call *call, enum store_op op)
{
    int code = store_opcode(call->client->dialect, op);

    return buf_append_u8(&call->client->out, (uint8_t)code) < 0
               ? err_sys(call->err, -ENOMEM, "store request")
               : 0;
}

/* A key with the "/" that is in front of its wire name. */
int store_call_put_key(const struct store_call *call, const char *key)
{
    struct buf *out = &call->client->out;
    size_t len;
    int rc;

    assert(key != NULL);
    len = strlen(key);
    if (len + 1 > STORE_KEY_MAX) {
        return err_set(call->err, -EMSGSIZE, "a key of %zu bytes is too long",
                       len);
    }
    rc = buf_append_u64(out, len + 1);
    if (rc == 0) {
        rc = buf_append_u8(out, '/');
    }
    if (rc == 0) {
        rc = buf_append(out, key, len);
    }
    return rc < 0 ? err_sys(call->err, rc, "store request") : 0;
}

int store_call_put_u64(const struct store_call *call, uint64_t value)
{
    int rc = buf_append_u64(&call->client->out, value);

    return rc < 0 ? err_sys(call->err, rc, "store request") : 0;
}

int store_call_put_value(const struct store_call *call, struct bytes value)
{
    int rc;

    if (value.len > STORE_VALUE_MAX) {
        return err_set(call->err, -EMSGSIZE, "a value of %zu bytes is too long",
                       value.len);
    }
    rc = store_put_str(&call->client->out, value.data, value.len);
    return rc < 0 ? err_sys(call->err, rc, "store request") : 0;
}

/* A count, that many keys, and with each its value, where there are some. */
int store_call_put_keys(const struct store_call *call, const char *const *keys,
                        const struct bytes *values, size_t n)
{
    int rc = store_call_put_u64(call, n);
    size_t i;

    for (i = 0; i < n && rc == 0; i++) {
        rc = store_call_put_key(call, keys[i]);
        if (rc == 0 && values != NULL) {
            rc = store_call_put_value(call, values[i]);
        }
    }
    return rc;
}

/* A request of one key. */
int store_call_begin_key(const struct store_call *call)
{
    int rc = store_call_begin(call);

    return rc < 0 ? rc : store_call_put_key(call, call->key);
}

int store_call_send(const struct store_call *call)
{
    struct store_client *client = call->client;
    int rc = sock_send(client->fd, client->out.data, client->out.len,
                       call->deadline_ms);

    client->n_requests++;
    return rc < 0 ? store_call_lost(call, rc) : 0;
}

/* --- replies ---------------------------------------------------------- */

int store_call_receive_some(const struct store_call *call, uint64_t deadline_ms)
{
    struct buf *in = &call->client->in;
    size_t n = 0;
    int rc = buf_reserve(in, READ_MIN);

    if (rc == 0) {
        rc = sock_receive_some(call->client->fd, in->data + in->len,
                               in->cap - in->len, deadline_ms, &n);
    }
    if (rc == 0 && n == 0) {
        rc = -ECONNRESET;
    }
    in->len += n;
    return rc;
}

int store_call_receive_quietly(const struct store_call *call,
                               struct store_reply *reply,
                               enum store_reply_kind kind, uint64_t n_strings,
                               uint64_t deadline_ms)
{
    const struct buf *in = &call->client->in;
    int rc;

    store_reply_begin(reply, kind, n_strings);
    while ((rc = store_reply_next(reply, in->data, in->len)) == 0) {
        rc = store_call_receive_some(call, deadline_ms);
        if (rc < 0) {
            return rc;
        }
    }
    return rc > 0 && in->len > reply->pos ? -EPROTO : rc > 0 ? 0 : rc;
}

int store_call_receive(const struct store_call *call, struct store_reply *reply,
                       enum store_reply_kind kind, uint64_t n_strings)
{
    int rc = store_call_receive_quietly(call, reply, kind, n_strings,
                                        call->deadline_ms);

    return rc < 0 ? store_call_lost(call, rc) : 0;
}

/* Send what was put together, and read its reply. */
int store_call_exchange(const struct store_call *call,
                        struct store_reply *reply, enum store_reply_kind kind,
                        uint64_t n_strings)
{
    int rc = store_call_send(call);

    return rc < 0 ? rc : store_call_receive(call, reply, kind, n_strings);
}

/* The string at *at of the reply, as the caller's own. */
int store_call_take_string(const struct store_call *call, size_t *at,
                           struct buf *out)
{
    struct bytes string = store_reply_string(call->client->in.data, at);
    struct buf copy = { 0 };

    if (buf_append(&copy, string.data, string.len) < 0) {
        return err_sys(call->err, -ENOMEM, "store reply");
    }
    *out = copy;
    return 0;
}

int store_call_cancel(const struct store_call *call)
{
    struct store_client *client = call->client;
    int code = store_opcode(client->dialect, STORE_OP_CANCEL_WAIT);
    uint64_t deadline_ms = clock_deadline(STORE_AT_ONCE_MS);
    uint8_t cancel = (uint8_t)code;
    struct store_reply reply;
    int rc;

    if (code < 0) {
        store_client_close(client);
        return store_call_dial(client, false, deadline_ms, call->err);
    }
    client->in.len = 0;
    rc = sock_send(client->fd, &cancel, 1, deadline_ms);
    if (rc == 0) {
        rc = store_call_receive_quietly(call, &reply, STORE_REPLY_CANCELED, 0,
                                        deadline_ms);
    }
    return rc < 0 ? store_call_lost(call, rc) : 0;
}
