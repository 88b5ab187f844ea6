#include "worker/store_client.h"

#include "worker/store_call.h"

#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static void client_init(struct store_client *client, const char *host,
                        uint16_t port, enum store_wanted wanted)
{
    *client = (struct store_client){ .fd = -1, .port = port, .wanted = wanted };
    (void)snprintf(client->host, sizeof(client->host), "%s", host);
}

int store_client_connect_any(struct store_client *client, const char *host,
                             uint16_t port, enum store_wanted wanted,
                             uint64_t deadline_ms, struct err *err)
{
    client_init(client, host, port, wanted);
    return store_call_dial(client, true, deadline_ms, err);
}

int store_client_connect(struct store_client *client, const char *host,
                         uint16_t port, uint64_t deadline_ms, struct err *err)
{
    return store_client_connect_any(client, host, port, STORE_WANT_D,
                                    deadline_ms, err);
}

int store_client_try(struct store_client *client, const char *host,
                     uint16_t port, uint64_t deadline_ms, struct err *err)
{
    client_init(client, host, port, STORE_WANT_D);
    return store_call_dial(client, false, deadline_ms, err);
}

void store_client_close(struct store_client *client)
{
    if (client->fd >= 0) {
        (void)close(client->fd);
    }
    client->fd = -1;
    buf_destroy(&client->out);
    buf_destroy(&client->in);
}

void store_client_peer(const struct store_client *client, char *address_out,
                       size_t size)
{
    struct sockaddr_storage name;
    socklen_t len = sizeof(name);

    if (client->fd < 0 ||
        getpeername(client->fd, (struct sockaddr *)&name, &len) < 0 ||
        getnameinfo((struct sockaddr *)&name, len, address_out, (socklen_t)size,
                    NULL, 0, NI_NUMERICHOST) != 0) {
        address_out[0] = '\0';
    }
}

static int send_value(const struct store_call *call, struct bytes value)
{
    int rc = store_call_begin_key(call);

    if (rc == 0) {
        rc = store_call_put_value(call, value);
    }
    return rc < 0 ? rc : store_call_send(call);
}

int store_client_set(struct store_client *client, const char *key,
                     struct bytes value, uint64_t deadline_ms, struct err *err)
{
    const struct store_call call = { client, STORE_OP_SET, key, deadline_ms,
                                     err };

    return send_value(&call, value);
}

int store_client_append(struct store_client *client, const char *key,
                        struct bytes suffix, uint64_t deadline_ms,
                        struct err *err)
{
    const struct store_call call = { client, STORE_OP_APPEND, key, deadline_ms,
                                     err };

    return send_value(&call, suffix);
}

int store_client_multi_set(struct store_client *client, const char *const *keys,
                           const struct bytes *values, size_t n,
                           uint64_t deadline_ms, struct err *err)
{
    const struct store_call call = { client, STORE_OP_MULTI_SET,
                                     n > 0 ? keys[0] : NULL, deadline_ms, err };
    int rc = store_call_begin(&call);

    if (rc == 0) {
        rc = store_call_put_keys(&call, keys, values, n);
    }
    return rc < 0 ? rc : store_call_send(&call);
}

int store_client_add(struct store_client *client, const char *key,
                     int64_t delta, uint64_t deadline_ms, int64_t *value_out,
                     struct err *err)
{
    const struct store_call call = { client, STORE_OP_ADD, key, deadline_ms,
                                     err };
    struct store_reply reply;
    int rc = store_call_begin_key(&call);

    if (rc == 0) {
        rc = store_call_put_u64(&call, (uint64_t)delta);
    }
    if (rc == 0) {
        rc = store_call_exchange(&call, &reply, STORE_REPLY_NUMBER, 0);
    }
    if (rc == 0) {
        *value_out = reply.number;
    }
    return rc;
}

int store_client_compare_set(struct store_client *client, const char *key,
                             struct bytes expected, struct bytes desired,
                             uint64_t deadline_ms, struct buf *value_out,
                             struct err *err)
{
    const struct store_call call = { client, STORE_OP_COMPARE_SET, key,
                                     deadline_ms, err };
    struct store_reply reply;
    size_t at = 0;
    int rc = store_call_begin_key(&call);

    if (rc == 0) {
        rc = store_call_put_value(&call, expected);
    }
    if (rc == 0) {
        rc = store_call_put_value(&call, desired);
    }
    if (rc == 0) {
        rc = store_call_exchange(&call, &reply, STORE_REPLY_STRINGS, 1);
    }
    return rc < 0 ? rc : store_call_take_string(&call, &at, value_out);
}

int store_client_check_all(struct store_client *client, const char *const *keys,
                           size_t n, uint64_t deadline_ms, bool *exist_out,
                           struct err *err)
{
    const struct store_call call = { client, STORE_OP_CHECK,
                                     n > 0 ? keys[0] : NULL, deadline_ms, err };
    struct store_reply reply;
    int rc = store_call_begin(&call);

    if (rc == 0) {
        rc = store_call_put_keys(&call, keys, NULL, n);
    }
    if (rc == 0) {
        rc = store_call_exchange(&call, &reply, STORE_REPLY_CODE, 0);
    }
    if (rc == 0) {
        *exist_out = reply.number == STORE_READY;
    }
    return rc;
}

int store_client_check(struct store_client *client, const char *key,
                       uint64_t deadline_ms, bool *exists_out, struct err *err)
{
    return store_client_check_all(client, &key, 1, deadline_ms, exists_out,
                                  err);
}

int store_client_delete(struct store_client *client, const char *key,
                        uint64_t deadline_ms, bool *existed_out,
                        struct err *err)
{
    const struct store_call call = { client, STORE_OP_DELETE_KEY, key,
                                     deadline_ms, err };
    struct store_reply reply;
    int rc = store_call_begin_key(&call);

    if (rc == 0) {
        rc = store_call_exchange(&call, &reply, STORE_REPLY_NUMBER, 0);
    }
    if (rc == 0) {
        *existed_out = reply.number > 0;
    }
    return rc;
}

int store_client_num_keys(struct store_client *client, uint64_t deadline_ms,
                          int64_t *n_out, struct err *err)
{
    const struct store_call call = { client, STORE_OP_GETNUMKEYS, NULL,
                                     deadline_ms, err };
    struct store_reply reply;
    int rc = store_call_begin(&call);

    if (rc == 0) {
        rc = store_call_exchange(&call, &reply, STORE_REPLY_NUMBER, 0);
    }
    if (rc == 0) {
        *n_out = reply.number;
    }
    return rc;
}
