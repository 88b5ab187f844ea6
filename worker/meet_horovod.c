/*
 * The HTTP store that horovodrun serves, in a scope of our own. It has no wait:
 * a get asks again and again. It lives as long as the driver does, also over
 * the restarts of an elastic job, so that what is there may be old.
 */
#include "worker/meet.h"

#include "common/clock.h"
#include "worker/http_kv.h"
#include "worker/sock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCOPE "flaunch"
#define POLL_MS 20
#define POLL_MAX_MS 500

struct horovod {
    char host[256];
    uint16_t port;
};

/* Everything up to the answer's end: its status or a negative errno. */
static int receive(int fd, struct buf *reply, uint64_t deadline_ms,
                   struct bytes *body_out)
{
    for (;;) {
        size_t n = 0;
        int rc = buf_reserve(reply, 4096);

        if (rc == 0) {
            rc = sock_receive_some(fd, reply->data + reply->len, 4096,
                                   deadline_ms, &n);
        }
        if (rc < 0) {
            return rc;
        }
        reply->len += n;
        rc = http_kv_reply((struct bytes){ reply->data, reply->len }, n == 0,
                           body_out);
        if (rc != -EAGAIN) {
            return rc;
        }
        if (reply->len > HTTP_KV_REPLY_MAX) {
            return -EPROTO;
        }
    }
}

/* One request: the status, and the body in value_out where there is one. */
static int exchange(const struct horovod *horovod, const struct buf *request,
                    char *value_out, size_t size, uint64_t deadline_ms,
                    struct err *err)
{
    struct buf reply = { 0 };
    struct bytes body = { 0 };
    int fd = sock_connect_host(horovod->host, horovod->port, deadline_ms,
                               "Horovod's store", err);
    int rc;

    if (fd < 0) {
        return fd;
    }
    rc = sock_send(fd, request->data, request->len, deadline_ms);
    if (rc == 0) {
        rc = receive(fd, &reply, deadline_ms, &body);
    }
    if (rc == 200 && value_out != NULL && body.len >= size) {
        rc = -EPROTO;
    }
    if (rc == 200 && value_out != NULL) {
        (void)snprintf(value_out, size, "%.*s", (int)body.len,
                       body.len > 0 ? (const char *)body.data : "");
    }
    buf_destroy(&reply);
    (void)close(fd);
    return rc < 0 ? err_sys(err, rc, "Horovod's store %s port %u",
                            horovod->host, horovod->port)
                  : rc;
}

static int horovod_put(struct meet *meet, const char *key, const char *value,
                       uint64_t deadline_ms, struct err *err)
{
    const struct horovod *horovod = meet->state;
    struct bytes bytes = { (const uint8_t *)value, strlen(value) };
    struct buf request = { 0 };
    int rc = http_kv_put(&request, SCOPE, key, bytes);

    if (rc < 0) {
        (void)err_sys(err, rc, "Horovod's store");
    } else {
        rc = exchange(horovod, &request, NULL, 0, deadline_ms, err);
    }
    buf_destroy(&request);
    if (rc >= 0 && rc != 200) {
        rc = err_set(err, -EPROTO, "Horovod's store %s port %u: status %d",
                     horovod->host, horovod->port, rc);
    }
    return rc < 0 ? rc : 0;
}

/* Whoever gets waits by itself. */
static int horovod_fence(struct meet *meet, uint64_t deadline_ms,
                         struct err *err)
{
    (void)meet;
    (void)deadline_ms;
    (void)err;
    return 0;
}

static int horovod_get(struct meet *meet, const char *key, char *value_out,
                       size_t size, uint64_t deadline_ms, struct err *err)
{
    const struct horovod *horovod = meet->state;
    struct buf request = { 0 };
    uint64_t pause_ms = POLL_MS;
    int rc = http_kv_get(&request, SCOPE, key);

    if (rc < 0) {
        (void)err_sys(err, rc, "Horovod's store");
    }
    while (rc >= 0) {
        rc = exchange(horovod, &request, value_out, size, deadline_ms, err);
        if (rc < 0 || rc == 200) {
            break;
        }
        if (rc != 404) {
            rc = err_set(err, -EPROTO, "Horovod's store %s port %u: status %d",
                         horovod->host, horovod->port, rc);
        } else if (clock_poll_ms(deadline_ms) == 0) {
            rc = err_set(err, -ETIMEDOUT,
                         "Horovod's store: rank 0 left nothing there");
        } else {
            clock_sleep_ms(pause_ms);
            pause_ms = pause_ms * 2 < POLL_MAX_MS ? pause_ms * 2 : POLL_MAX_MS;
        }
    }
    buf_destroy(&request);
    return rc < 0 ? rc : 0;
}

static void horovod_close(struct meet *meet, uint64_t deadline_ms)
{
    (void)deadline_ms;
    free(meet->state);
}

static const struct meet_ops horovod_ops = { horovod_put, horovod_fence,
                                             horovod_get, horovod_close };

int meet_horovod_open(struct meet *meet, struct detected *detected,
                      uint64_t deadline_ms, struct err *err)
{
    struct horovod *horovod = calloc(1, sizeof(*horovod));

    (void)deadline_ms;
    if (horovod == NULL) {
        return err_sys(err, -ENOMEM, "Horovod's store");
    }
    (void)snprintf(horovod->host, sizeof(horovod->host), "%s", detected->host);
    horovod->port = detected->port;
    *meet = (struct meet){ .ops = &horovod_ops,
                           .state = horovod,
                           .may_be_old = true };
    return 0;
}
