#include "worker/store_client.h"

#include "common/clock.h"
#include "common/resolve.h"
#include "common/store_proto.h"
#include "worker/sock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAUSE_FIRST_MS 20
#define PAUSE_MAX_MS 1000
/* A store answers the hello at once; what stays silent is none, or is an old
 * one that waits for more. */
#define HELLO_MS 5000
/* A reply after CANCEL_WAIT, which a store sends at once. */
#define CANCEL_MS 5000
/* Longer values than a store of ours would send are refused. */
#define REPLY_MAX ((size_t)64 * 1024 * 1024)

static int lost(struct store_client *client, int rc, const char *doing,
                const char *key, struct err *err)
{
    store_client_close(client);
    return err_sys(err, rc, "store %s port %u: %s%s%s", client->host,
                   client->port, doing, key != NULL ? " " : "",
                   key != NULL ? key : "");
}

/*
 * A hello and a first request in one write. Every server of this dialect
 * answers eight bytes; older ones take it for the beginning of a long key and
 * stay silent.
 */
static int greet(int fd, uint64_t deadline_ms)
{
    uint64_t hello_ms = clock_deadline(HELLO_MS);
    uint8_t hello[STORE_HELLO_LEN + 1];
    uint8_t reply[8];
    int rc;

    hello[0] = (uint8_t)store_opcode(STORE_DIALECT_D, STORE_OP_VALIDATE);
    le_put_u32(hello + 1, STORE_MAGIC);
    hello[STORE_HELLO_LEN] =
        (uint8_t)store_opcode(STORE_DIALECT_D, STORE_OP_GETNUMKEYS);
    rc = sock_send(fd, hello, sizeof(hello), deadline_ms);
    if (rc < 0) {
        return rc;
    }
    rc = sock_receive(fd, reply, sizeof(reply),
                      clock_earlier(hello_ms, deadline_ms));
    if (rc == -ETIMEDOUT && hello_ms < deadline_ms) {
        return -EPROTO;
    }
    return rc < 0 ? rc : fd;
}

/* Every address in turn, once: the socket, or the last error. */
static int connect_round(const char *host, uint16_t port, uint64_t deadline_ms,
                         struct err *err)
{
    struct addrinfo *list;
    const struct addrinfo *address;
    int fd = -EHOSTUNREACH;
    int rc = resolve_host(host, port, deadline_ms, &list, err);

    if (rc < 0) {
        return rc;
    }
    for (address = list; address != NULL && fd < 0;
         address = address->ai_next) {
        fd = sock_connect(address, deadline_ms);
        if (fd >= 0) {
            rc = greet(fd, deadline_ms);
            if (rc < 0) {
                (void)close(fd);
                fd = rc;
            }
        }
    }
    freeaddrinfo(list);
    if (fd == -EPROTO) {
        return err_set(err, fd,
                       "what listens at %s port %u is no store of PyTorch 2.2 "
                       "or later",
                       host, port);
    }
    return fd < 0 ? err_sys(err, fd, "store %s port %u", host, port) : fd;
}

/* The pause, half of it random: clients of one job must not come in step. */
static uint64_t jittered(uint64_t pause_ms)
{
    uint32_t random = 0;

    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0) {
        random = (uint32_t)clock_ns();
    }
    return pause_ms / 2 + random % (pause_ms / 2 + 1);
}

int store_client_try(struct store_client *client, const char *host,
                     uint16_t port, uint64_t deadline_ms, struct err *err)
{
    int fd;

    *client = (struct store_client){ .fd = -1, .port = port };
    (void)snprintf(client->host, sizeof(client->host), "%s", host);
    fd = connect_round(host, port, deadline_ms, err);
    if (fd < 0) {
        return fd;
    }
    client->fd = fd;
    client->n_requests = 2;
    return 0;
}

int store_client_connect(struct store_client *client, const char *host,
                         uint16_t port, uint64_t deadline_ms, struct err *err)
{
    uint64_t started_ms = clock_ms();
    uint64_t pause_ms = PAUSE_FIRST_MS;
    struct err why = { 0 };

    for (;;) {
        int rc = store_client_try(client, host, port, deadline_ms, &why);
        uint64_t next_pause_ms = jittered(pause_ms);

        if (rc == 0) {
            return 0;
        }
        if (rc == -EPROTO || rc == -ENOMEM) {
            return err_set(err, rc, "%s", why.text);
        }
        if (clock_deadline(next_pause_ms) >= deadline_ms) {
            return err_set(err, -ETIMEDOUT, "%s (tried for %.1f s)", why.text,
                           (double)(clock_ms() - started_ms) / 1000);
        }
        clock_sleep_ms(next_pause_ms);
        pause_ms = pause_ms * 2 < PAUSE_MAX_MS ? pause_ms * 2 : PAUSE_MAX_MS;
    }
}

void store_client_close(struct store_client *client)
{
    if (client->fd >= 0) {
        (void)close(client->fd);
    }
    client->fd = -1;
    buf_destroy(&client->out);
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

/* A key with the "/" that is in front of its wire name. */
static int put_key(struct buf *out, const char *key, struct err *err)
{
    size_t len;
    int rc;

    assert(key != NULL);
    len = strlen(key);
    if (len + 1 > STORE_KEY_MAX) {
        return err_set(err, -EMSGSIZE, "a key of %zu bytes is too long", len);
    }
    rc = buf_append_u64(out, len + 1);
    if (rc == 0) {
        rc = buf_append_u8(out, '/');
    }
    if (rc == 0) {
        rc = buf_append(out, key, len);
    }
    return rc < 0 ? err_sys(err, rc, "store request") : 0;
}

/* Begin a request for keys; WAIT and CHECK say how many there are. */
static int request_begin_all(struct store_client *client, enum store_op op,
                             const char *const *keys, size_t n_keys,
                             struct err *err)
{
    size_t i;
    int rc;

    if (client->fd < 0) {
        return err_set(err, -ENOTCONN, "store %s port %u: not connected",
                       client->host, client->port);
    }
    client->out.len = 0;
    rc =
        buf_append_u8(&client->out, (uint8_t)store_opcode(STORE_DIALECT_D, op));
    if (rc == 0 && (op == STORE_OP_WAIT || op == STORE_OP_CHECK)) {
        rc = buf_append_u64(&client->out, n_keys);
    }
    if (rc < 0) {
        return err_sys(err, rc, "store request");
    }
    for (i = 0; i < n_keys && rc == 0; i++) {
        rc = put_key(&client->out, keys[i], err);
    }
    return rc;
}

static int request_begin(struct store_client *client, enum store_op op,
                         const char *key, struct err *err)
{
    return request_begin_all(client, op, &key, 1, err);
}

static int request_send(struct store_client *client, const char *key,
                        uint64_t deadline_ms, struct err *err)
{
    int rc =
        sock_send(client->fd, client->out.data, client->out.len, deadline_ms);

    client->n_requests++;
    return rc < 0 ? lost(client, rc, "sending a request for", key, err) : 0;
}

int store_client_set(struct store_client *client, const char *key,
                     struct bytes value, uint64_t deadline_ms, struct err *err)
{
    int rc;

    if (value.len > STORE_VALUE_MAX) {
        return err_set(err, -EMSGSIZE, "a value of %zu bytes is too long",
                       value.len);
    }
    rc = request_begin(client, STORE_OP_SET, key, err);
    if (rc < 0) {
        return rc;
    }
    rc = store_put_str(&client->out, value.data, value.len);
    if (rc < 0) {
        return err_sys(err, rc, "store request");
    }
    return request_send(client, key, deadline_ms, err);
}

/*
 * Take a WAIT back. The server answers "cancelled", or, where the key came at
 * the same moment, "ready" and then "cancelled".
 */
static int wait_cancel(struct store_client *client, const char *key,
                       struct err *err)
{
    uint64_t deadline_ms = clock_deadline(CANCEL_MS);
    uint8_t cancel =
        (uint8_t)store_opcode(STORE_DIALECT_D, STORE_OP_CANCEL_WAIT);
    uint8_t code = STORE_STOP_WAITING;
    int rc = sock_send(client->fd, &cancel, 1, deadline_ms);
    int n;

    for (n = 0; n < 2 && rc == 0 && code != STORE_WAIT_CANCELED; n++) {
        rc = sock_receive(client->fd, &code, 1, deadline_ms);
    }
    if (rc == 0 && code != STORE_WAIT_CANCELED) {
        rc = -EPROTO;
    }
    return rc < 0 ? lost(client, rc, "giving up waiting for", key, err) : 0;
}

int store_client_get(struct store_client *client, const char *key,
                     uint64_t deadline_ms, struct buf *value_out,
                     struct err *err)
{
    struct buf value = { 0 };
    uint8_t raw[8];
    uint64_t len = 0;
    int rc = store_client_wait(client, key, deadline_ms, err);

    if (rc == 0) {
        rc = request_begin(client, STORE_OP_GET, key, err);
    }
    if (rc == 0) {
        rc = request_send(client, key, deadline_ms, err);
    }
    if (rc < 0) {
        return rc;
    }
    rc = sock_receive(client->fd, raw, sizeof(raw), deadline_ms);
    if (rc == 0) {
        len = le_u64(raw);
        rc = len > REPLY_MAX ? -EPROTO : buf_reserve(&value, (size_t)len);
    }
    if (rc == 0 && len > 0) {
        rc = sock_receive(client->fd, value.data, (size_t)len, deadline_ms);
        value.len = (size_t)len;
    }
    if (rc < 0) {
        buf_destroy(&value);
        return lost(client, rc, "getting", key, err);
    }
    *value_out = value;
    return 0;
}

int store_client_add(struct store_client *client, const char *key,
                     int64_t delta, uint64_t deadline_ms, int64_t *value_out,
                     struct err *err)
{
    uint8_t raw[8];
    int rc = request_begin(client, STORE_OP_ADD, key, err);

    if (rc < 0) {
        return rc;
    }
    rc = buf_append_u64(&client->out, (uint64_t)delta);
    if (rc < 0) {
        return err_sys(err, rc, "store request");
    }
    rc = request_send(client, key, deadline_ms, err);
    if (rc < 0) {
        return rc;
    }
    rc = sock_receive(client->fd, raw, sizeof(raw), deadline_ms);
    if (rc < 0) {
        return lost(client, rc, "adding to", key, err);
    }
    *value_out = (int64_t)le_u64(raw);
    return 0;
}

int store_client_check(struct store_client *client, const char *key,
                       uint64_t deadline_ms, bool *exists_out, struct err *err)
{
    uint8_t code;
    int rc = request_begin(client, STORE_OP_CHECK, key, err);

    if (rc == 0) {
        rc = request_send(client, key, deadline_ms, err);
    }
    if (rc < 0) {
        return rc;
    }
    rc = sock_receive(client->fd, &code, 1, deadline_ms);
    if (rc == 0 && code != STORE_READY && code != STORE_NOT_READY) {
        rc = -EPROTO;
    }
    if (rc < 0) {
        return lost(client, rc, "checking", key, err);
    }
    *exists_out = code == STORE_READY;
    return 0;
}

/* Append the keys of keys that do not exist, as far as text has room. */
static void list_missing(struct store_client *client, const char *const *keys,
                         size_t n_keys, char *text, size_t size)
{
    uint64_t deadline_ms = clock_deadline(CANCEL_MS);
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

/* The time is up: take the WAIT back, and say what it was for. */
static int wait_timed_out(struct store_client *client, const char *const *keys,
                          size_t n_keys, uint64_t started_ms, struct err *err)
{
    double seconds = (double)(clock_ms() - started_ms) / 1000;
    char missing[512];
    int rc = wait_cancel(client, keys[0], err);

    if (rc < 0) {
        return rc;
    }
    list_missing(client, keys, n_keys, missing, sizeof(missing));
    if (missing[0] == '\0') {
        return 0; /* the last one came just now */
    }
    return err_set(
        err, -ETIMEDOUT, "store %s port %u: waited %.1f s in vain for key%s %s",
        client->host, client->port, seconds, n_keys == 1 ? "" : "s", missing);
}

int store_client_wait_all(struct store_client *client, const char *const *keys,
                          size_t n_keys, uint64_t deadline_ms, struct err *err)
{
    uint64_t started_ms = clock_ms();
    uint8_t code;
    int rc;

    if (n_keys == 0 || n_keys > STORE_CLIENT_KEYS_MAX) {
        return err_set(err, -EINVAL, "a wait for %zu keys", n_keys);
    }
    rc = request_begin_all(client, STORE_OP_WAIT, keys, n_keys, err);
    if (rc == 0) {
        rc = request_send(client, keys[0], deadline_ms, err);
    }
    if (rc < 0) {
        return rc;
    }
    rc = sock_receive(client->fd, &code, 1, deadline_ms);
    if (rc == -ETIMEDOUT) {
        return wait_timed_out(client, keys, n_keys, started_ms, err);
    }
    if (rc == 0 && code != STORE_STOP_WAITING) {
        rc = -EPROTO;
    }
    return rc < 0 ? lost(client, rc, "waiting for", keys[0], err) : 0;
}

int store_client_wait(struct store_client *client, const char *key,
                      uint64_t deadline_ms, struct err *err)
{
    return store_client_wait_all(client, &key, 1, deadline_ms, err);
}
