#include "common/store_server.h"

#include "common/log.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static void server_closed_maybe(struct store_server *server)
{
    if (!server->listener_closed || server->conns != NULL || server->refusing) {
        return;
    }
    store_destroy(server->store);
    free(server->read_buffer);
    server->store = NULL;
    server->read_buffer = NULL;
    server->on_closed(server, server->arg);
}

static void listener_closed(uv_handle_t *handle)
{
    struct store_server *server = handle->data;

    server->listener_closed = true;
    server_closed_maybe(server);
}

static void conn_closed(struct store_conn *conn, void *arg)
{
    struct store_server *server = arg;

    *conn->at = conn->next;
    if (conn->next != NULL) {
        conn->next->at = conn->at;
    }
    free(conn);
    if (server->stopping) {
        server_closed_maybe(server);
    }
}

static void server_accept(uv_stream_t *stream, int status);

static void refused_closed(uv_handle_t *handle)
{
    struct store_server *server = handle->data;

    server->refusing = false;
    if (server->stopping) {
        server_closed_maybe(server);
        return;
    }
    server_accept((uv_stream_t *)&server->listener, 0);
}

/*
 * Accept a client only to close it. libuv stops listening while one stays
 * unaccepted, so without this a moment without memory would end the store.
 */
static void server_refuse(struct store_server *server, int why)
{
    uv_stream_t *listener = (uv_stream_t *)&server->listener;

    log_line(LOG_WARN, "store: cannot accept a client: %s", uv_strerror(why));
    if (server->refusing || uv_tcp_init(listener->loop, &server->refused) < 0) {
        return; /* the client stays in the queue until refused_closed */
    }
    server->refused.data = server;
    server->refusing = true;
    (void)uv_accept(listener, (uv_stream_t *)&server->refused);
    uv_close((uv_handle_t *)&server->refused, refused_closed);
}

/* Put conn on the list of connections; conn_closed takes it off. */
static void server_add(struct store_server *server, struct store_conn *conn)
{
    conn->next = server->conns;
    conn->at = &server->conns;
    if (conn->next != NULL) {
        conn->next->at = &conn->next;
    }
    server->conns = conn;
}

static void server_accept(uv_stream_t *stream, int status)
{
    struct store_server *server = stream->data;
    struct store_conn *conn;
    int rc;

    if (server->stopping) {
        return;
    }
    if (status < 0) {
        log_line(LOG_WARN, "store: cannot accept a client: %s",
                 uv_strerror(status));
        return;
    }
    conn = calloc(1, sizeof(*conn));
    if (conn == NULL) {
        server_refuse(server, UV_ENOMEM);
        return;
    }
    rc = store_conn_init(conn, stream->loop, server->store, server->read_buffer,
                         conn_closed, server);
    if (rc < 0) {
        free(conn);
        server_refuse(server, rc);
        return;
    }
    server_add(server, conn);
    rc = uv_accept(stream, (uv_stream_t *)&conn->tcp);
    if (rc == 0) {
        rc = store_conn_start(conn);
    }
    if (rc < 0) {
        store_conn_stop(conn);
    }
}

int store_server_start(struct store_server *server, uv_loop_t *loop,
                       int listen_fd, struct store *store,
                       void (*on_closed)(struct store_server *server,
                                         void *arg),
                       void *arg, struct err *err)
{
    int rc;

    *server = (struct store_server){ .store = store,
                                     .on_closed = on_closed,
                                     .arg = arg };
    /* Without an address family this makes no system call and cannot fail. */
    (void)uv_tcp_init(loop, &server->listener);
    server->listener.data = server;
    server->read_buffer = malloc(sizeof(*server->read_buffer));
    rc = server->read_buffer != NULL ? 0 : -ENOMEM;
    if (rc == 0) {
        rc = uv_tcp_open(&server->listener, listen_fd);
    }
    if (rc < 0) {
        (void)close(listen_fd);
        store_server_stop(server);
        return err_sys(err, rc, "cannot serve the store");
    }
    /* The kernel cuts the backlog to somaxconn. */
    rc = uv_listen((uv_stream_t *)&server->listener, 65535, server_accept);
    if (rc < 0) {
        store_server_stop(server);
        return err_sys(err, rc, "cannot serve the store");
    }
    return 0;
}

void store_server_stop(struct store_server *server)
{
    struct store_conn *conn;

    if (server->stopping) {
        return;
    }
    server->stopping = true;
    uv_close((uv_handle_t *)&server->listener, listener_closed);
    for (conn = server->conns; conn != NULL; conn = conn->next) {
        store_conn_stop(conn);
    }
}
