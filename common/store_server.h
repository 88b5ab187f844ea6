/*
 * Accepts the store's clients, on libuv.
 *
 * Life: store_server_start, store_server_stop, on_closed. The server owns its
 * connections and, from start on, the listening sockets and the store.
 */
#ifndef FLAUNCH_COMMON_STORE_SERVER_H
#define FLAUNCH_COMMON_STORE_SERVER_H

#include "common/err.h"
#include "common/net.h"
#include "common/store_conns.h"
#include "common/store_peers.h"

/* What a server is told. Zero will do for all but listeners and conf. */
struct store_setup {
    struct net_listeners listeners;
    struct store_conf conf;
    const struct port_demux *demux; /* who takes agents; outlives the server */
    /* What a person should know of a client, as one line; on the server's
     * thread. NULL: nobody is told. */
    void (*complain)(const char *text, void *arg);
    /* On loopback: whether a user is one of the owner's, see store_peers.h;
     * on the server's thread. */
    bool (*is_ours)(uid_t uid, void *arg);
    void *arg; /* of both */
};

struct store_listener {
    struct poll_item item;
    struct store_server *server;
    struct sockaddr_storage address;
    bool loopback;
};

struct store_server {
    struct store_conns *conns;
    struct store *store;
    struct store_peers peers;
    struct store_listener listeners[NET_LISTENERS_MAX];
    size_t n_listeners;
    uv_timer_t pause; /* until clients are accepted again */
    int n_open;       /* the pause, and conns */
    int spare_fd;     /* given up for a moment where there is no other */
    bool stopping;
    void (*on_closed)(struct store_server *server, void *arg);
    void *arg;
};

/*
 * Serve a new store. The sockets are the server's from this call on; a client
 * that connects before waits in their queues.
 *
 * Returns 0, or a negative errno with a sentence; on_closed runs in either
 * case, once, from the loop: after store_server_stop, or after the failure.
 */
int store_server_start(struct store_server *server, uv_loop_t *loop,
                       const struct store_setup *setup,
                       void (*on_closed)(struct store_server *server,
                                         void *arg),
                       void *arg, struct err *err);

/* Log, for FLAUNCH_DEBUG=detail, which client waits for which keys. */
void store_server_say_waiting(const struct store_server *server);

/* Begin to close all; may be called twice. on_closed runs once, later. */
void store_server_stop(struct store_server *server);

#endif
