#include "common/store_conn.h"

#include "common/log.h"

#include <errno.h>
#include <string.h>

/* A first byte must be followed by the rest of a hello within this time. A
 * connection that sends nothing at all is normal: old clients open one. */
#define HELLO_TIMEOUT_MS 10000
#define KEEPALIVE_SECONDS 30

static void handle_closed(uv_handle_t *handle)
{
    struct store_conn *conn = handle->data;

    if (--conn->open_handles == 0) {
        store_session_destroy(&conn->session);
        buf_destroy(&conn->sending);
        conn->on_closed(conn, conn->arg); /* the owner frees conn here */
    }
}

void store_conn_stop(struct store_conn *conn)
{
    if (conn->stopping) {
        return;
    }
    conn->stopping = true;
    uv_close((uv_handle_t *)&conn->tcp, handle_closed);
    uv_close((uv_handle_t *)&conn->hello_timer, handle_closed);
}

static void conn_flush(struct store_conn *conn);

static void conn_written(uv_write_t *write, int status)
{
    struct store_conn *conn = write->data;

    conn->writing = false;
    conn->sending.len = 0;
    if (conn->stopping) {
        return;
    }
    if (status < 0) {
        store_conn_stop(conn);
        return;
    }
    conn_flush(conn);
}

/* Send what try_write did not take; out collects the next replies. */
static void conn_write_rest(struct store_conn *conn)
{
    struct buf spare = conn->sending;
    uv_buf_t piece;

    conn->sending = conn->session.out;
    conn->session.out = spare;
    piece =
        uv_buf_init((char *)conn->sending.data, (unsigned)conn->sending.len);
    conn->write.data = conn;
    if (uv_write(&conn->write, (uv_stream_t *)&conn->tcp, &piece, 1,
                 conn_written) < 0) {
        store_conn_stop(conn);
        return;
    }
    conn->writing = true;
}

/* All replies at hand in one write; close when the session has ended. */
static void conn_flush(struct store_conn *conn)
{
    struct buf *out = &conn->session.out;
    uv_buf_t piece;
    int n;

    if (conn->writing || conn->stopping) {
        return;
    }
    if (out->len > 0) {
        piece = uv_buf_init((char *)out->data, (unsigned)out->len);
        n = uv_try_write((uv_stream_t *)&conn->tcp, &piece, 1);
        if (n < 0 && n != UV_EAGAIN) {
            store_conn_stop(conn);
            return;
        }
        buf_consume(out, n > 0 ? (size_t)n : 0);
    }
    if (out->len > 0) {
        conn_write_rest(conn);
        return;
    }
    if (out->cap > sizeof(conn->read_buffer->data)) {
        buf_destroy(out); /* one large reply must not be kept for ever */
    }
    if (conn->ended) {
        store_conn_stop(conn);
    }
}

/* Another client's request has ended this one's WAIT. */
static void conn_wake(void *arg)
{
    struct store_conn *conn = arg;

    if (!conn->feeding) {
        conn_flush(conn);
    }
}

static void hello_timed_out(uv_timer_t *timer)
{
    store_conn_stop(timer->data);
}

static void conn_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct store_conn *conn = handle->data;

    (void)suggested;
    *buf =
        uv_buf_init(conn->read_buffer->data, sizeof(conn->read_buffer->data));
}

static void conn_end(struct store_conn *conn)
{
    conn->ended = true;
    (void)uv_read_stop((uv_stream_t *)&conn->tcp);
    (void)uv_timer_stop(&conn->hello_timer);
    conn_flush(conn);
}

static void conn_feed(struct store_conn *conn, const uint8_t *data, size_t len)
{
    int rc;

    conn->feeding = true;
    rc = store_session_feed(&conn->session, data, len);
    conn->feeding = false;
    if (rc < 0) {
        log_line(LOG_DEBUG, "store: a client is cut off: %s", strerror(-rc));
        conn_end(conn);
        return;
    }
    if (conn->session.have_dialect) {
        (void)uv_timer_stop(&conn->hello_timer);
    } else if (!uv_is_active((uv_handle_t *)&conn->hello_timer)) {
        (void)uv_timer_start(&conn->hello_timer, hello_timed_out,
                             HELLO_TIMEOUT_MS, 0);
    }
    conn_flush(conn);
}

/* The first bytes: true where they are an agent's, and not ours any more. */
static bool conn_is_agents(struct store_conn *conn, const uint8_t *data,
                           size_t len)
{
    const struct port_demux *demux = conn->demux;
    uv_os_fd_t fd;

    conn->demux = NULL;
    if (demux == NULL || !port_demux_is_agent(data, len)) {
        return false;
    }
    if (uv_fileno((uv_handle_t *)&conn->tcp, &fd) == 0) {
        (void)port_demux_hand_over(demux, fd, data, len);
    }
    store_conn_stop(conn);
    return true;
}

static void conn_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct store_conn *conn = stream->data;

    if (conn->stopping || n == 0) {
        return;
    }
    if (n == UV_EOF) {
        /* What came before the EOF is answered; a pending WAIT is dropped. */
        conn_end(conn);
        return;
    }
    if (n < 0) {
        store_conn_stop(conn);
        return;
    }
    if (!conn_is_agents(conn, (const uint8_t *)buf->base, (size_t)n)) {
        conn_feed(conn, (const uint8_t *)buf->base, (size_t)n);
    }
}

int store_conn_init(struct store_conn *conn, uv_loop_t *loop,
                    struct store *store, struct store_read_buffer *read_buffer,
                    const struct port_demux *demux,
                    void (*on_closed)(struct store_conn *conn, void *arg),
                    void *arg)
{
    int rc;

    *conn = (struct store_conn){ .read_buffer = read_buffer,
                                 .demux = demux,
                                 .on_closed = on_closed,
                                 .arg = arg };
    rc = uv_tcp_init(loop, &conn->tcp);
    if (rc < 0) {
        return rc;
    }
    (void)uv_timer_init(loop, &conn->hello_timer); /* cannot fail */
    conn->tcp.data = conn;
    conn->hello_timer.data = conn;
    conn->open_handles = 2;
    store_session_init(&conn->session, store, conn_wake, conn);
    return 0;
}

int store_conn_start(struct store_conn *conn)
{
    (void)uv_tcp_nodelay(&conn->tcp, 1);
    (void)uv_tcp_keepalive(&conn->tcp, 1, KEEPALIVE_SECONDS);
    return uv_read_start((uv_stream_t *)&conn->tcp, conn_alloc, conn_read);
}
