/*
 * Waiting for keys, and getting their values.
 */
#include "common/clock.h"
#include "worker/store_call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Append the keys of keys that do not exist, as far as text has room. */
static void list_missing(struct store_client *client, const char *const *keys,
                         size_t n_keys, char *text, size_t size)
{
    uint64_t deadline_ms = clock_deadline(STORE_AT_ONCE_MS);
    size_t n_more = 0;
    size_t len = 0;
    size_t i;

    text[0] = '\0';
    for (i = 0; i < n_keys; i++) {
        bool exists = false;

        /* Where that cannot be asked, all count as missing. */
        (void)store_client_check(client, keys[i], deadline_ms, &exists, NULL);
        if (exists) {
            continue;
        }
        if (len + strlen(keys[i]) + 32 > size) {
            n_more++;
            continue;
        }
        len += (size_t)snprintf(text + len, size - len, "%s%s",
                                len > 0 ? ", " : "", keys[i]);
    }
    if (n_more > 0) {
        (void)snprintf(text + len, size - len, "%s%zu more",
                       len > 0 ? " and " : "", n_more);
    }
}

/* The time is up: take the WAIT back, and say what it was for. 0 where the last
 * key came just now. */
static int wait_timed_out(const struct store_call *call,
                          const char *const *keys, size_t n_keys)
{
    struct store_client *client = call->client;
    double seconds = store_call_seconds(call);
    char missing[512];
    int rc = store_call_cancel(call);

    if (rc < 0) {
        return rc;
    }
    list_missing(client, keys, n_keys, missing, sizeof(missing));
    if (missing[0] == '\0') {
        return 0;
    }
    return err_set(call->err, -ETIMEDOUT,
                   "store %s port %u: waited %.1f s in vain for key%s %s",
                   client->host, client->port, seconds, n_keys == 1 ? "" : "s",
                   missing);
}

/* The byte that ends a wait for keys, which is sent. */
static int wait_end(const struct store_call *call, const char *const *keys,
                    size_t n)
{
    struct store_reply reply;
    int rc;

    rc = store_call_receive_quietly(call, &reply, STORE_REPLY_CODE, 0,
                                    call->deadline_ms);
    if (rc == -ETIMEDOUT) {
        return wait_timed_out(call, keys, n);
    }
    if (rc == 0 && reply.number != STORE_STOP_WAITING) {
        rc = -EPROTO;
    }
    return rc < 0 ? store_call_lost(call, rc) : 0;
}

int store_client_wait_all(struct store_client *client, const char *const *keys,
                          size_t n_keys, uint64_t deadline_ms, struct err *err)
{
    const struct store_call call = { client, STORE_OP_WAIT,
                                     n_keys > 0 ? keys[0] : NULL, deadline_ms,
                                     err };
    int rc;

    if (n_keys == 0 || n_keys > STORE_CLIENT_KEYS_MAX) {
        return err_set(err, -EINVAL, "a wait for %zu keys", n_keys);
    }
    rc = store_call_begin(&call);
    if (rc == 0) {
        rc = store_call_put_keys(&call, keys, NULL, n_keys);
    }
    if (rc == 0) {
        rc = store_call_send(&call);
    }
    return rc < 0 ? rc : wait_end(&call, keys, n_keys);
}

int store_client_wait(struct store_client *client, const char *key,
                      uint64_t deadline_ms, struct err *err)
{
    return store_client_wait_all(client, &key, 1, deadline_ms, err);
}

/* GET alone: of a key that is there. */
static int get_now(const struct store_call *call, struct buf *value_out)
{
    struct store_reply reply;
    size_t at = 0;
    int rc = store_call_begin_key(call);

    if (rc == 0) {
        rc = store_call_exchange(call, &reply, STORE_REPLY_STRINGS, 1);
    }
    return rc < 0 ? rc : store_call_take_string(call, &at, value_out);
}

static int get_one_by_one(const struct store_call *call, struct buf *value_out)
{
    int rc = store_client_wait(call->client, call->key, call->deadline_ms,
                               call->err);

    return rc < 0 ? rc : get_now(call, value_out);
}

#define BOTH_MIN 9 /* a code and a length, or the other way round */

/*
 * What answers WAIT and GET in one write, up to the first length: the code and
 * then the value where the key was there; else an empty value from GET at once,
 * and the code when it is due. 0 or a negative errno; -ETIMEDOUT: the code is
 * due still. GET's own answer is waited for past the deadline, as a store sends
 * it at once: without it the two could not be told apart.
 */
static int receive_both(const struct store_call *call)
{
    const struct buf *in = &call->client->in;
    uint64_t at_once_ms;
    int rc = 0;

    while (rc == 0 && in->len < BOTH_MIN) {
        rc = store_call_receive_some(call, call->deadline_ms);
    }
    if (rc != -ETIMEDOUT || in->len == BOTH_MIN - 1) {
        return rc;
    }
    rc = 0;
    at_once_ms = clock_deadline(STORE_AT_ONCE_MS);
    while (rc == 0 && in->len < BOTH_MIN - 1) {
        rc = store_call_receive_some(call, at_once_ms);
    }
    return rc == 0 && in->len == BOTH_MIN - 1 ? -ETIMEDOUT : rc;
}

/* Nine zeros: an empty value, or a key that came after GET was answered. */
static bool is_unclear(const struct buf *in)
{
    static const uint8_t zeros[BOTH_MIN];

    return in->len == BOTH_MIN && memcmp(in->data, zeros, BOTH_MIN) == 0;
}

/*
 * WAIT and GET in one write. A server answers GET at once, also while the WAIT
 * pends; the threaded ones of PyTorch close the connection where the key is
 * missing then. Returns 1 where it is to be tried one by one.
 */
static int get_both(const struct store_call *call, struct buf *value_out)
{
    struct store_client *client = call->client;
    struct buf *in = &client->in;
    struct store_reply reply;
    size_t at = 0;
    int rc = store_call_begin(call);

    if (rc == 0) {
        rc = store_call_put_keys(call, &call->key, NULL, 1);
    }
    if (rc == 0) {
        rc = store_call_also(call, STORE_OP_GET);
    }
    if (rc == 0) {
        rc = store_call_put_key(call, call->key);
    }
    if (rc == 0) {
        rc = store_call_send(call);
    }
    if (rc < 0) {
        return rc;
    }
    client->n_requests++;
    rc = receive_both(call);
    if (rc == -ETIMEDOUT && in->len == BOTH_MIN - 1) {
        rc = wait_timed_out(call, &call->key, 1);
        return rc < 0 ? rc : 1; /* it came just now */
    }
    if ((rc == -ECONNRESET || rc == -EPIPE) && in->len == 0) {
        (void)store_call_lost(call, rc);
        client->one_by_one = true;
        rc = store_call_dial(client, false, call->deadline_ms, call->err);
        return rc < 0 ? rc : 1;
    }
    if (rc < 0) {
        return store_call_lost(call, rc);
    }
    if (is_unclear(in)) {
        return 1;
    }
    if (in->data[0] != STORE_STOP_WAITING) {
        return store_call_lost(call, -EPROTO);
    }
    buf_consume(in, 1);
    rc = store_call_receive(call, &reply, STORE_REPLY_STRINGS, 1);
    return rc < 0 ? rc : store_call_take_string(call, &at, value_out);
}

int store_client_get(struct store_client *client, const char *key,
                     uint64_t deadline_ms, struct buf *value_out,
                     struct err *err)
{
    const struct store_call wait = { client, STORE_OP_WAIT, key, deadline_ms,
                                     err };
    const struct store_call get = { client, STORE_OP_GET, key, deadline_ms,
                                    err };
    int rc = client->one_by_one ? 1 : get_both(&wait, value_out);

    return rc > 0 ? get_one_by_one(&get, value_out) : rc;
}

int store_client_multi_get(struct store_client *client, const char *const *keys,
                           size_t n, uint64_t deadline_ms,
                           struct buf *values_out, struct err *err)
{
    const struct store_call call = { client, STORE_OP_MULTI_GET,
                                     n > 0 ? keys[0] : NULL, deadline_ms, err };
    struct store_reply reply;
    size_t at = 0;
    size_t i;
    int rc;

    rc = store_client_wait_all(client, keys, n, deadline_ms, err);
    if (rc == 0) {
        rc = store_call_begin(&call);
    }
    if (rc == 0) {
        rc = store_call_put_keys(&call, keys, NULL, n);
    }
    if (rc == 0) {
        rc = store_call_exchange(&call, &reply, STORE_REPLY_STRINGS, n);
    }
    for (i = 0; i < n && rc == 0; i++) {
        rc = store_call_take_string(&call, &at, &values_out[i]);
        if (rc < 0) {
            while (i-- > 0) {
                buf_destroy(&values_out[i]);
            }
        }
    }
    return rc;
}
