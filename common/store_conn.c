#include "common/store_conn.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/net.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A first byte must be followed by the rest of a hello within this time. A
 * connection that sends nothing at all is normal: old clients open one. */
#define HELLO_TIMEOUT_MS 10000
#define KEEPALIVE_SECONDS 30
/* Memory for replies that is kept between two reads. */
#define REPLIES_KEPT ((size_t)256 * 1024)

/* --- what is said -----------------------------------------------------------
 */

void store_peer_text(int fd, char *text_out, size_t size)
{
    struct sockaddr_storage name = { .ss_family = AF_UNSPEC };
    socklen_t len = sizeof(name);
    char host[64];

    (void)getpeername(fd, (struct sockaddr *)&name, &len);
    net_address_text((struct sockaddr *)&name, host, sizeof(host));
    (void)snprintf(text_out, size,
                   strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u", host,
                   net_port_of((struct sockaddr *)&name));
}

void store_complain(struct store_shared *shared, int fd, const char *what)
{
    char line[ERR_TEXT_MAX + 256];
    char peer[80];
    char more[64] = "";
    size_t n_left_out;

    if (shared->complain == NULL ||
        !log_limit_take(&shared->complaints, clock_ms(), &n_left_out)) {
        return;
    }
    store_peer_text(fd, peer, sizeof(peer));
    if (n_left_out > 0) {
        (void)snprintf(more, sizeof(more), " (and %zu others before)",
                       n_left_out);
    }
    (void)snprintf(line, sizeof(line),
                   "store: the client at %s is cut off: %s%s", peer, what,
                   more);
    shared->complain(line, shared->complain_arg);
}

/* --- life -------------------------------------------------------------------
 */

static void handle_closed(uv_handle_t *handle)
{
    struct store_conn *conn = handle->data;

    if (--conn->open_handles > 0) {
        return;
    }
    free(conn->timer);
    store_session_destroy(&conn->session);
    store_release(conn->shared->store, conn->charged);
    buf_destroy(&conn->unsent);
    conn->on_closed(conn, conn->arg); /* the owner frees conn here */
}

void store_conn_stop(struct store_conn *conn)
{
    if (conn->stopping) {
        return;
    }
    conn->stopping = true;
    uv_close((uv_handle_t *)&conn->poll, handle_closed);
    (void)close(conn->fd); /* the poll does not look at it any more */
    if (conn->timer != NULL) {
        uv_close((uv_handle_t *)conn->timer, handle_closed);
    }
}

/* The session is over by the client's fault, or for want of memory. */
static void conn_fail(struct store_conn *conn, const char *why)
{
    conn->failed = true;
    if (conn->session.have_dialect) {
        store_complain(conn->shared, conn->fd, why);
    } else {
        /* A port scanner is nothing that a user has to do with. */
        log_line(LOG_DEBUG, "store: a stranger is cut off: %s", why);
    }
}

/* --- time -------------------------------------------------------------------
 */

static void hello_timed_out(uv_timer_t *timer)
{
    store_conn_stop(timer->data);
}

static void grace_over(uv_timer_t *timer);

static void timer_arm(struct store_conn *conn, uv_timer_cb callback,
                      uint64_t timeout_ms)
{
    if (conn->timer == NULL) {
        conn->timer = malloc(sizeof(*conn->timer));
        if (conn->timer == NULL) {
            store_conn_stop(conn);
            return;
        }
        (void)uv_timer_init(conn->shared->loop, conn->timer); /* cannot fail */
        conn->timer->data = conn;
        conn->open_handles++;
    }
    (void)uv_timer_start(conn->timer, callback, timeout_ms, 0);
}

/* What silence of the client would mean, after what it has sent. */
static void watch_silence(struct store_conn *conn)
{
    if (conn->stopping) {
        return;
    }
    if (conn->session.have_dialect) {
        if (store_session_undecided(&conn->session)) {
            timer_arm(conn, grace_over, STORE_GRACE_MS);
        } else if (conn->timer != NULL) {
            (void)uv_timer_stop(conn->timer);
        }
    } else if (conn->timer == NULL) {
        timer_arm(conn, hello_timed_out, HELLO_TIMEOUT_MS);
    }
}

/* --- replies out ------------------------------------------------------------
 */

static void conn_ready(uv_poll_t *poll, int status, int events);

/* What to ask poll for next; the end, where there is nothing to wait for. */
static void conn_poll(struct store_conn *conn)
{
    bool full = conn->held || conn->unsent.len >= STORE_OUT_HIGH;
    int events = 0;

    if (conn->stopping) {
        return;
    }
    if (!conn->eof && !conn->failed && !full) {
        events |= UV_READABLE;
    }
    if (conn->unsent.len > 0 || (conn->held && !conn->failed)) {
        events |= UV_WRITABLE;
    }
    if (events == 0 || (events != conn->events &&
                        uv_poll_start(&conn->poll, events, conn_ready) < 0)) {
        store_conn_stop(conn);
        return;
    }
    conn->events = events;
}

/* Have the store count what is unsent. */
static void charge_unsent(struct store_conn *conn)
{
    struct store *store = conn->shared->store;
    size_t cap = conn->unsent.cap;

    if (cap > conn->charged && !store_charge(store, cap - conn->charged)) {
        conn_fail(conn, "its unread replies take the store's memory "
                        "(--store-max-memory)");
        buf_destroy(&conn->unsent);
        conn->unsent_at = 0;
        cap = 0;
    }
    if (cap < conn->charged) {
        store_release(store, conn->charged - cap);
    }
    conn->charged = cap;
}

/* Send as much as the kernel takes: how much; 0 also where it takes nothing
 * now. The connection is stopped where it is of no more use. */
static size_t conn_send(struct store_conn *conn, const uint8_t *data,
                        size_t len)
{
    ssize_t n = send(conn->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        store_conn_stop(conn);
    }
    return n > 0 ? (size_t)n : 0;
}

static void conn_flush(struct store_conn *conn)
{
    struct buf *unsent = &conn->unsent;

    if (unsent->len == 0 || conn->stopping) {
        return;
    }
    conn->unsent_at += conn_send(conn, unsent->data + conn->unsent_at,
                                 unsent->len - conn->unsent_at);
    if (conn->unsent_at == unsent->len) {
        buf_destroy(unsent); /* idle connections hold no buffer */
        conn->unsent_at = 0;
    } else if (conn->unsent_at > unsent->len / 2) {
        buf_consume(unsent, conn->unsent_at);
        conn->unsent_at = 0;
    }
    charge_unsent(conn);
}

/* Send what one read has brought; keep what the kernel does not take. */
static void replies_send(struct store_conn *conn)
{
    struct buf *replies = &conn->shared->replies;
    size_t n = conn_send(conn, replies->data, replies->len);

    if (n < replies->len && !conn->stopping &&
        buf_append(&conn->unsent, replies->data + n, replies->len - n) < 0) {
        conn_fail(conn, "no memory for its replies");
    }
    charge_unsent(conn);
    replies->len = 0;
    if (replies->cap > REPLIES_KEPT) {
        buf_destroy(replies);
    }
}

/* Another client's request has ended this one's WAIT, or changed a key that
 * this one watches. */
static void conn_wake(void *arg)
{
    struct store_conn *conn = arg;

    if (conn->feeding || conn->stopping) {
        return;
    }
    if (conn->session.late_error < 0 && !conn->failed) {
        conn_fail(conn, conn->session.late_error == -ENOBUFS
                            ? "it does not read what it watches"
                            : "no memory for its replies");
    }
    conn_flush(conn);
    conn_poll(conn);
}

/* --- requests in ------------------------------------------------------------
 */

/* Take requests; with len 0, those that were held. */
static void conn_feed(struct store_conn *conn, const uint8_t *data, size_t len)
{
    struct store_session *session = &conn->session;
    bool direct = conn->unsent.len == 0;
    struct err err;
    int rc;

    /* Replies go straight out of the shared buffer, unless older ones wait. */
    session->out = direct ? &conn->shared->replies : &conn->unsent;
    conn->feeding = true;
    rc = store_session_feed(session, data, len, &err);
    conn->held = rc == 0 && store_session_is_held(session);
    conn->feeding = false;
    session->out = &conn->unsent;
    if (rc < 0) {
        conn_fail(conn, err.text);
    }
    if (!direct) {
        charge_unsent(conn);
    } else if (conn->shared->replies.len > 0) {
        replies_send(conn);
    }
    watch_silence(conn);
}

static void grace_over(uv_timer_t *timer)
{
    struct store_conn *conn = timer->data;

    store_session_settle(&conn->session);
    conn_feed(conn, NULL, 0);
    conn_poll(conn);
}

/* The first bytes: true where they are an agent's, and not ours any more. */
static bool conn_is_agents(struct store_conn *conn, const uint8_t *data,
                           size_t len)
{
    const struct port_demux *demux = conn->shared->demux;

    if (!conn->fresh || demux == NULL || !port_demux_is_agent(data, len)) {
        return false;
    }
    (void)port_demux_hand_over(demux, conn->fd, data, len);
    store_conn_stop(conn);
    return true;
}

static void conn_read(struct store_conn *conn)
{
    uint8_t *data = conn->shared->read_buffer;
    ssize_t n = recv(conn->fd, data, STORE_READ_MAX, MSG_DONTWAIT);

    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            store_conn_stop(conn);
        }
        return;
    }
    if (n == 0) {
        /* What came before the EOF is answered; a pending WAIT is dropped. */
        conn->eof = true;
        return;
    }
    if (!conn_is_agents(conn, data, (size_t)n)) {
        conn->fresh = false;
        conn_feed(conn, data, (size_t)n);
    }
}

static void conn_ready(uv_poll_t *poll, int status, int events)
{
    struct store_conn *conn = poll->data;

    if (status < 0) {
        store_conn_stop(conn);
        return;
    }
    if ((events & UV_WRITABLE) != 0) {
        conn_flush(conn);
        if (conn->held && !conn->stopping && !conn->failed &&
            conn->unsent.len < STORE_OUT_HIGH) {
            conn_feed(conn, NULL, 0);
        }
    }
    if ((events & UV_READABLE) != 0 && !conn->stopping && !conn->failed) {
        conn_read(conn);
    }
    conn_poll(conn);
}

static void socket_prepare(int fd)
{
    const int on = 1;
    const int seconds = KEEPALIVE_SECONDS;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
}

int store_conn_start(struct store_conn *conn, struct store_shared *shared,
                     int fd,
                     void (*on_closed)(struct store_conn *conn, void *arg),
                     void *arg)
{
    int rc;

    *conn = (struct store_conn){ .shared = shared,
                                 .fd = fd,
                                 .fresh = true,
                                 .on_closed = on_closed,
                                 .arg = arg };
    rc = uv_poll_init(shared->loop, &conn->poll, fd);
    if (rc < 0) {
        (void)close(fd);
        return rc;
    }
    conn->poll.data = conn;
    conn->open_handles = 1;
    socket_prepare(fd);
    store_session_init(&conn->session, shared->store, &conn->unsent, conn_wake,
                       conn);
    conn_poll(conn); /* stops it where that fails */
    return 0;
}
