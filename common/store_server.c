#include "common/store_server.h"

#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Connections taken in one turn of the loop: many, since a queue that runs
 * over costs its clients seconds; not all, since others want to be served. */
#define ACCEPTS_MAX 1024
#define PAUSE_MS 100
/* Keys of one client that are told, and bytes of each. */
#define KEYS_SAID 8
#define KEY_SHOWN ((size_t)200)

/* --- the end -----------------------------------------------------------------
 */

static void server_closed_maybe(struct store_server *server)
{
    if (server->n_open > 0 || !LIST_EMPTY(&server->conns)) {
        return;
    }
    store_peers_destroy(&server->peers);
    if (server->spare_fd >= 0) {
        (void)close(server->spare_fd);
    }
    if (server->shared != NULL) {
        buf_destroy(&server->shared->replies);
        store_destroy(server->shared->store);
        free(server->shared);
        server->shared = NULL;
    }
    server->on_closed(server, server->arg);
}

static void handle_closed(uv_handle_t *handle)
{
    struct store_server *server = handle->data;

    server->n_open--;
    server_closed_maybe(server);
}

static void conn_closed(struct store_conn *conn, void *arg)
{
    struct store_server *server = arg;

    LIST_REMOVE(conn, all);
    server->n_conns--;
    free(conn);
    if (server->stopping) {
        server_closed_maybe(server);
    }
}

void store_server_stop(struct store_server *server)
{
    struct store_conn *conn;
    size_t i;

    if (server->stopping) {
        return;
    }
    server->stopping = true;
    for (i = 0; i < server->n_listeners; i++) {
        server->listeners[i].poll.data = server;
        uv_close((uv_handle_t *)&server->listeners[i].poll, handle_closed);
        (void)close(server->listeners[i].fd);
    }
    uv_close((uv_handle_t *)&server->pause, handle_closed);
    LIST_FOREACH(conn, &server->conns, all)
    {
        store_conn_stop(conn);
    }
}

/* --- clients come ------------------------------------------------------------
 */

static void refuse(struct store_server *server, int fd, const char *why)
{
    store_complain(server->shared, fd, why);
    (void)close(fd);
}

/* Whether the client at fd may come in; else it is closed. */
static bool admit(struct store_server *server,
                  const struct store_listener *listener, int fd)
{
    struct store_shared *shared = server->shared;
    const struct store_conf *conf = store_conf_of(shared->store);
    struct err err;
    char why[80];
    int rc;

    if (server->n_conns >= conf->max_connections) {
        (void)snprintf(why, sizeof(why),
                       "there are %u already (--store-max-connections)",
                       conf->max_connections);
        refuse(server, fd, why);
        return false;
    }
    rc = listener->loopback ? store_peers_check(&server->peers, fd, &err) : 0;
    if (rc < 0) {
        refuse(server, fd, err.text);
        return false;
    }
    if (rc > 0 && shared->complain != NULL) {
        shared->complain(err.text, shared->complain_arg);
    }
    return true;
}

static void take(struct store_server *server,
                 const struct store_listener *listener, int fd)
{
    struct store_conn *conn;
    int rc;

    if (!admit(server, listener, fd)) {
        return;
    }
    conn = malloc(sizeof(*conn));
    if (conn == NULL) {
        refuse(server, fd, "out of memory");
        return;
    }
    rc = store_conn_start(conn, server->shared, fd, conn_closed, server);
    if (rc < 0) {
        free(conn);
        log_line(LOG_DEBUG, "store: a client is closed: %s", uv_strerror(rc));
        return;
    }
    LIST_INSERT_HEAD(&server->conns, conn, all);
    server->n_conns++;
}

/*
 * Without a free descriptor a client cannot even be turned away, and would wait
 * for an answer for ever: give up the spare one, and refuse it with that. False
 * where there is none either.
 */
static bool shed(struct store_server *server, int listen_fd)
{
    int fd;

    if (server->spare_fd < 0) {
        return false;
    }
    (void)close(server->spare_fd);
    fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        refuse(server, fd, "there are no more descriptors (ulimit -n)");
    }
    server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return true;
}

static void listener_ready(uv_poll_t *poll, int status, int events);

static void pause_over(uv_timer_t *timer)
{
    struct store_server *server = timer->data;
    size_t i;

    for (i = 0; i < server->n_listeners; i++) {
        (void)uv_poll_start(&server->listeners[i].poll, UV_READABLE,
                            listener_ready);
    }
}

/* Leave clients in the queues for a moment: nothing can be done for them. */
static void pause_accepting(struct store_server *server)
{
    size_t i;

    for (i = 0; i < server->n_listeners; i++) {
        (void)uv_poll_stop(&server->listeners[i].poll);
    }
    (void)uv_timer_start(&server->pause, pause_over, PAUSE_MS, 0);
}

/* One client: false where there is none, or none can be taken now. */
static bool accept_one(struct store_server *server,
                       const struct store_listener *listener)
{
    int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0) {
        take(server, listener, fd);
        return true;
    }
    switch (errno) {
    case EAGAIN:
        return false;
    case EMFILE:
    case ENFILE:
        if (shed(server, listener->fd)) {
            return true;
        }
        break;
    case ENOMEM:
    case ENOBUFS:
        break;
    default:
        return true; /* the client has gone already */
    }
    log_line(LOG_DEBUG, "store: no clients are accepted for %d ms: %s",
             PAUSE_MS, strerror(errno));
    pause_accepting(server);
    return false;
}

static void listener_ready(uv_poll_t *poll, int status, int events)
{
    struct store_listener *listener = poll->data;
    int n = 0;

    (void)status; /* accept tells */
    (void)events;
    while (n < ACCEPTS_MAX && accept_one(listener->server, listener)) {
        n++;
    }
}

/* --- the beginning
 * ------------------------------------------------------------ */

static int shared_create(struct store_server *server, uv_loop_t *loop,
                         const struct store_setup *setup)
{
    struct store_shared *shared = malloc(sizeof(*shared));

    if (shared == NULL) {
        return -ENOMEM;
    }
    *shared = (struct store_shared){ .loop = loop,
                                     .demux = setup->demux,
                                     .complain = setup->complain,
                                     .complain_arg = setup->arg,
                                     .store = store_create(&setup->conf) };
    server->shared = shared;
    return shared->store != NULL ? 0 : -ENOMEM;
}

/* fd is the server's from here on, also where this fails. */
static int listener_open(struct store_server *server, uv_loop_t *loop, int fd)
{
    struct store_listener *listener = &server->listeners[server->n_listeners];
    int rc = uv_poll_init(loop, &listener->poll, fd);

    if (rc < 0) {
        (void)close(fd);
        return rc;
    }
    listener->poll.data = listener;
    listener->server = server;
    listener->fd = fd;
    listener->loopback = net_is_on_loopback(fd);
    server->n_listeners++;
    server->n_open++;
    return uv_poll_start(&listener->poll, UV_READABLE, listener_ready);
}

int store_server_start(struct store_server *server, uv_loop_t *loop,
                       const struct store_setup *setup,
                       void (*on_closed)(struct store_server *server,
                                         void *arg),
                       void *arg, struct err *err)
{
    struct net_listeners rest = setup->listeners;
    int rc;

    *server = (struct store_server){ .on_closed = on_closed, .arg = arg };
    (void)uv_timer_init(loop, &server->pause); /* cannot fail */
    server->pause.data = server;
    server->n_open = 1;
    store_peers_init(&server->peers, setup->is_ours, setup->arg);
    server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    rc = shared_create(server, loop, setup);
    while (rest.n > 0 && rc == 0) {
        rc = listener_open(server, loop, rest.fds[--rest.n]);
    }
    net_listeners_close(&rest); /* those that nobody has taken */
    if (rc < 0) {
        store_server_stop(server);
        return err_sys(err, rc, "cannot serve the store");
    }
    return 0;
}

/* --- who waits
 * ------------------------------------------------------------------ */

static void say_waits_of(const struct store_conn *conn)
{
    const struct store_waiter *waiter = &conn->session.waiter;
    struct bytes key;
    char peer[80];
    size_t i;

    store_peer_text(conn->fd, peer, sizeof(peer));
    for (i = 0; i < KEYS_SAID && store_waiter_key(waiter, i, &key); i++) {
        log_line(LOG_DEBUG, "store: %s waits for key %.*s", peer,
                 (int)(key.len < KEY_SHOWN ? key.len : KEY_SHOWN),
                 (const char *)key.data);
    }
    if (i == KEYS_SAID && waiter->n_missing > i) {
        log_line(LOG_DEBUG, "store: %s waits for %zu keys more", peer,
                 waiter->n_missing - i);
    }
}

void store_server_say_waiting(const struct store_server *server)
{
    const struct store_conn *conn;

    LIST_FOREACH(conn, &server->conns, all)
    {
        if (!conn->stopping) {
            say_waits_of(conn);
        }
    }
}
