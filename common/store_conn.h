/*
 * One client connection of the store, on libuv.
 *
 * Life: store_conn_start, store_conn_stop, on_closed. A session that ends by
 * the client's mistake, EOF or an error stops the connection by itself.
 */
#ifndef FLAUNCH_COMMON_STORE_CONN_H
#define FLAUNCH_COMMON_STORE_CONN_H

#include "common/port_demux.h"
#include "common/store_session.h"

#include <uv.h>

/* Shared by all connections of one loop: bytes are parsed as they come. */
struct store_read_buffer {
    char data[64 * 1024];
};

struct store_conn {
    uv_tcp_t tcp;
    uv_timer_t hello_timer;
    struct store_session session;
    struct store_read_buffer *read_buffer;
    const struct port_demux *demux; /* or NULL; until the first bytes came */
    struct buf sending;             /* what a uv_write under way has borrowed */
    uv_write_t write;
    size_t open_handles;
    bool writing;
    bool feeding;
    bool ended; /* nothing more is read; close when all is sent */
    bool stopping;
    void (*on_closed)(struct store_conn *conn, void *arg);
    void *arg;
    struct store_conn *next;
    struct store_conn **at;
};

/*
 * Prepare conn and its handles: 0 or a negative errno, and then on_closed
 * never runs. demux, which may be NULL, gets the connection if it turns out to
 * be an agent's. Accept into &conn->tcp, then call store_conn_start.
 */
int store_conn_init(struct store_conn *conn, uv_loop_t *loop,
                    struct store *store, struct store_read_buffer *read_buffer,
                    const struct port_demux *demux,
                    void (*on_closed)(struct store_conn *conn, void *arg),
                    void *arg);

/* Begin to read. Returns 0, or a negative errno: stop it then. */
int store_conn_start(struct store_conn *conn);

/* Begin to close; may be called twice. on_closed runs once, later. */
void store_conn_stop(struct store_conn *conn);

#endif
