#include "common/store_server.h"

#include "common/log.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Keys of one client that are told, and bytes of each. */
#define KEYS_SAID 8
#define KEY_SHOWN ((size_t)200)

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
                         server->demux, conn_closed, server);
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
                       const struct port_demux *demux,
                       void (*on_closed)(struct store_server *server,
                                         void *arg),
                       void *arg, struct err *err)
{
    int rc;

    *server = (struct store_server){
        .store = store, .demux = demux, .on_closed = on_closed, .arg = arg
    };
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

/* "127.0.0.1:41234", for a person. */
static void peer_name(const struct store_conn *conn, char *text, size_t size)
{
    struct sockaddr_storage address;
    int len = sizeof(address);
    char host[64] = "?";
    unsigned port = 0;

    if (uv_tcp_getpeername(&conn->tcp, (struct sockaddr *)&address, &len) ==
        0) {
        (void)uv_ip_name((struct sockaddr *)&address, host, sizeof(host));
        port = ntohs(((struct sockaddr_in *)(void *)&address)->sin_port);
    }
    (void)snprintf(text, size, "%s:%u", host, port);
}

void store_server_say_waiting(const struct store_server *server)
{
    const struct store_conn *conn;

    for (conn = server->conns; conn != NULL; conn = conn->next) {
        const struct store_waiter *waiter = &conn->session.waiter;
        struct bytes key;
        char peer[80];
        size_t i;

        for (i = 0; i < KEYS_SAID && store_waiter_key(waiter, i, &key); i++) {
            peer_name(conn, peer, sizeof(peer));
            log_line(LOG_DEBUG, "store: %s waits for key %.*s", peer,
                     (int)(key.len < KEY_SHOWN ? key.len : KEY_SHOWN),
                     (const char *)key.data);
        }
        if (i == KEYS_SAID && waiter->n_missing > i) {
            log_line(LOG_DEBUG, "store: %s waits for %zu keys more", peer,
                     waiter->n_missing - i);
        }
    }
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
