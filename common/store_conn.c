#include "common/store_conn.h"

#include "common/log.h"
#include "common/store_conns.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* Memory for replies that is kept between two reads. */
#define REPLIES_KEPT ((size_t)256 * 1024)

/* --- the end -------------------------------------------------------------- */

void store_conn_stop(struct store_conn *conn)
{
    if (conn->stopping) {
        return;
    }
    conn->stopping = true;
    poll_set_remove(&conn->conns->polls, &conn->item);
    (void)close(conn->item.fd);
    store_conns_bury(conn->conns, conn);
}

/* The session is over by the client's fault, or for want of memory. */
static void conn_fail(struct store_conn *conn, const char *why)
{
    conn->failed = true;
    if (conn->session.have_dialect) {
        store_conns_complain(conn->conns, conn->item.fd, why);
    } else {
        /* A port scanner is nothing that a user has to do with. */
        log_line(LOG_DEBUG, "store: a stranger is cut off: %s", why);
    }
}

/* --- replies out ------------------------------------------------------ */

/* What to wait for next; the end, where there is nothing. */
static void conn_poll(struct store_conn *conn)
{
    bool full = conn->held || conn->unsent.len >= STORE_OUT_HIGH;
    uint32_t events = 0;

    if (conn->stopping) {
        return;
    }
    if (!conn->eof && !conn->failed && !full) {
        events |= EPOLLIN;
    }
    if (conn->unsent.len > 0 || (conn->held && !conn->failed)) {
        events |= EPOLLOUT;
    }
    if (events == 0 ||
        poll_set_ask(&conn->conns->polls, &conn->item, events) < 0) {
        store_conn_stop(conn);
    }
}

/* Have the store count what is unsent. */
static void charge_unsent(struct store_conn *conn)
{
    struct store *store = conn->conns->store;
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
    ssize_t n = send(conn->item.fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

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
    struct buf *replies = &conn->conns->replies;
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

/* --- requests in ------------------------------------------------------ */

/* What silence of the client would mean, after what it has sent. */
static enum store_silence silence_of(const struct store_conn *conn)
{
    if (!conn->session.have_dialect && !conn->failed) {
        return STORE_SILENCE_HELLO;
    }
    return store_session_undecided(&conn->session) ? STORE_SILENCE_GRACE
                                                   : STORE_SILENCE_FINE;
}

/* Take requests; with len 0, those that were held. */
static void conn_feed(struct store_conn *conn, const uint8_t *data, size_t len)
{
    struct store_session *session = &conn->session;
    bool direct = conn->unsent.len == 0;
    struct err err;
    int rc;

    /* Replies go straight out of the shared buffer, unless older ones wait. */
    session->out = direct ? &conn->conns->replies : &conn->unsent;
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
    } else if (conn->conns->replies.len > 0) {
        replies_send(conn);
    }
    if (!conn->stopping) {
        store_conns_listen(conn->conns, conn, silence_of(conn));
    }
}

void store_conn_settle(struct store_conn *conn)
{
    store_session_settle(&conn->session);
    conn_feed(conn, NULL, 0);
    conn_poll(conn);
}

/* The first bytes: true where they are an agent's, and not ours any more. */
static bool conn_is_agents(struct store_conn *conn, const uint8_t *data,
                           size_t len)
{
    const struct port_demux *demux = conn->conns->demux;

    if (!conn->fresh || demux == NULL || !port_demux_is_agent(data, len)) {
        return false;
    }
    (void)port_demux_hand_over(demux, conn->item.fd, data, len);
    store_conn_stop(conn);
    return true;
}

static void conn_read(struct store_conn *conn)
{
    uint8_t *data = conn->conns->read_buffer;
    ssize_t n = recv(conn->item.fd, data, STORE_READ_MAX, MSG_DONTWAIT);

    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            store_conn_stop(conn);
        }
        return;
    }
    if (n == 0) {
        /* What came before the EOF is answered; a pending WAIT is dropped. */
        conn->eof = true;
        if (store_session_undecided(&conn->session)) {
            store_conn_settle(conn); /* no byte can follow */
        }
        return;
    }
    if (!conn_is_agents(conn, data, (size_t)n)) {
        conn->fresh = false;
        conn_feed(conn, data, (size_t)n);
    }
}

static void conn_ready(struct poll_item *item, uint32_t events)
{
    /* The item is the connection's first member. */
    struct store_conn *conn = (struct store_conn *)(void *)item;

    if ((events & EPOLLOUT) != 0) {
        conn_flush(conn);
        if (conn->held && !conn->stopping && !conn->failed &&
            conn->unsent.len < STORE_OUT_HIGH) {
            conn_feed(conn, NULL, 0);
        }
    }
    if (conn->stopping) {
        return;
    }
    if ((item->events & EPOLLIN) != 0) {
        if ((events & ~(uint32_t)EPOLLOUT) != 0) {
            conn_read(conn); /* tells of an error as well */
        }
    } else if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
        store_conn_stop(conn);
    }
    conn_poll(conn);
}

void store_conn_start(struct store_conn *conn, struct store_conns *conns,
                      int fd)
{
    conn->item = (struct poll_item){ .fd = fd, .ready = conn_ready };
    conn->conns = conns;
    conn->unsent = (struct buf){ 0 };
    conn->unsent_at = 0;
    conn->charged = 0;
    conn->fresh = true;
    conn->feeding = false;
    conn->held = false;
    conn->eof = false;
    conn->failed = false;
    conn->stopping = false;
    store_session_init(&conn->session, conns->store, &conn->unsent, conn_wake,
                       conn);
    conn_read(conn); /* who comes has often spoken already */
    conn_poll(conn); /* stops it where that fails */
}
