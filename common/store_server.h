/*
 * Accepts the store's clients on one listening socket, on libuv.
 *
 * Life: store_server_start, store_server_stop, on_closed. The server owns its
 * connections and, from start on, the listening socket and the store.
 */
#ifndef FLAUNCH_COMMON_STORE_SERVER_H
#define FLAUNCH_COMMON_STORE_SERVER_H

#include "common/err.h"
#include "common/store_conn.h"

struct store_server {
    uv_tcp_t listener;
    uv_tcp_t refused; /* where a client goes that no memory is left for */
    bool refusing;
    struct store *store;
    const struct port_demux *demux; /* who takes agents, or NULL */
    struct store_conn *conns;
    struct store_read_buffer *read_buffer;
    bool listener_closed;
    bool stopping;
    void (*on_closed)(struct store_server *server, void *arg);
    void *arg;
};

/*
 * Serve store on listen_fd, a socket that listens already (connections wait
 * in its queue until then). Both belong to the server from this call on; demux
 * is the caller's and may be NULL.
 *
 * Returns 0, or a negative errno with a sentence; on_closed runs in either
 * case, once, from the loop: after store_server_stop, or after the failure.
 */
int store_server_start(struct store_server *server, uv_loop_t *loop,
                       int listen_fd, struct store *store,
                       const struct port_demux *demux,
                       void (*on_closed)(struct store_server *server,
                                         void *arg),
                       void *arg, struct err *err);

/* Log, for FLAUNCH_DEBUG=detail, which client waits for which keys. */
void store_server_say_waiting(const struct store_server *server);

/* Begin to close all; may be called twice. on_closed runs once, later. */
void store_server_stop(struct store_server *server);

#endif
