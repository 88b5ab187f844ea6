#include "common/store_server.h"

#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Connections taken in one turn of the loop: many, since a queue that runs
 * over costs its clients seconds; not all, since others want to be served. */
#define ACCEPTS_MAX 1024
#define PAUSE_MS 100
#define KEEPALIVE_SECONDS 30
/* Keys of one client that are told, and bytes of each. */
#define KEYS_SAID 8
#define KEY_SHOWN ((size_t)200)

/* --- the end ------------------------------------------------------------- */

static void part_closed(struct store_server *server)
{
    if (--server->n_open > 0) {
        return;
    }
    store_peers_destroy(&server->peers);
    if (server->spare_fd >= 0) {
        (void)close(server->spare_fd);
    }
    store_destroy(server->store);
    free(server->conns);
    server->on_closed(server, server->arg);
}

static void pause_closed(uv_handle_t *handle)
{
    part_closed(handle->data);
}

static void conns_closed(struct store_conns *conns, void *arg)
{
    (void)conns;
    part_closed(arg);
}

void store_server_stop(struct store_server *server)
{
    size_t i;

    if (server->stopping) {
        return;
    }
    server->stopping = true;
    for (i = 0; i < server->n_listeners; i++) {
        struct poll_item *item = &server->listeners[i].item;

        if (item->events != 0) {
            poll_set_remove(&server->conns->polls, item);
        }
        (void)close(item->fd);
    }
    uv_close((uv_handle_t *)&server->pause, pause_closed);
    if (server->conns != NULL) {
        store_conns_stop(server->conns);
    }
}

/* --- clients come ----------------------------------------------------- */

static void refuse(struct store_server *server, int fd, const char *why)
{
    store_conns_complain(server->conns, fd, why);
    (void)close(fd);
}

/* Whether the client at fd may come in; else it is closed. */
static bool admit(struct store_server *server,
                  const struct store_listener *listener, int fd,
                  const struct sockaddr_storage *peer)
{
    struct store_conns *conns = server->conns;
    const struct store_conf *conf = store_conf_of(server->store);
    struct err err;
    char why[80];
    int rc;

    if (conns->n >= conf->max_connections) {
        (void)snprintf(why, sizeof(why),
                       "there are %u already (--store-max-connections)",
                       conf->max_connections);
        refuse(server, fd, why);
        return false;
    }
    rc = listener->loopback
             ? store_peers_check(&server->peers, peer, &listener->address, &err)
             : 0;
    if (rc < 0) {
        refuse(server, fd, err.text);
        return false;
    }
    if (rc > 0 && conns->complain != NULL) {
        conns->complain(err.text, conns->complain_arg);
    }
    return true;
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

static void listener_ready(struct poll_item *item, uint32_t events);

static int listeners_ask(struct store_server *server)
{
    int rc = 0;
    size_t i;

    for (i = 0; i < server->n_listeners && rc == 0; i++) {
        rc = poll_set_ask(&server->conns->polls, &server->listeners[i].item,
                          EPOLLIN);
    }
    return rc;
}

static void pause_accepting(struct store_server *server);

static void pause_over(uv_timer_t *timer)
{
    if (listeners_ask(timer->data) < 0) {
        pause_accepting(timer->data);
    }
}

/* Leave clients in the queues for a moment: nothing can be done for them. */
static void pause_accepting(struct store_server *server)
{
    size_t i;

    for (i = 0; i < server->n_listeners; i++) {
        poll_set_remove(&server->conns->polls, &server->listeners[i].item);
    }
    (void)uv_timer_start(&server->pause, pause_over, PAUSE_MS, 0);
}

/* One client: false where there is none, or none can be taken now. */
static bool accept_one(struct store_server *server,
                       const struct store_listener *listener)
{
    struct sockaddr_storage peer = { .ss_family = AF_UNSPEC };
    socklen_t len = sizeof(peer);
    int fd = accept4(listener->item.fd, (struct sockaddr *)&peer, &len,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0) {
        if (admit(server, listener, fd, &peer) &&
            store_conns_add(server->conns, fd) < 0) {
            log_line(LOG_DEBUG, "store: no memory for a client");
        }
        return true;
    }
    switch (errno) {
    case EAGAIN:
        return false;
    case EMFILE:
    case ENFILE:
        if (shed(server, listener->item.fd)) {
            return true;
        }
        break;
    case ENOMEM:
    case ENOBUFS:
    case EINVAL: /* a socket of the parent's that is none any more */
        break;
    default:
        return true; /* the client has gone already */
    }
    log_line(LOG_DEBUG, "store: no clients are accepted for %d ms: %s",
             PAUSE_MS, strerror(errno));
    pause_accepting(server);
    return false;
}

static void listener_ready(struct poll_item *item, uint32_t events)
{
    /* The item is the listener's first member. */
    struct store_listener *listener = (struct store_listener *)(void *)item;
    int n = 0;

    (void)events; /* accept tells */
    while (n < ACCEPTS_MAX && accept_one(listener->server, listener)) {
        n++;
    }
}

/* --- the beginning ------------------------------------------------------- */

/* Linux gives a connection the options of the socket that listened. */
static void options_set(int listen_fd)
{
    const int on = 1;
    const int seconds = KEEPALIVE_SECONDS;

    (void)setsockopt(listen_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(listen_fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(listen_fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds,
                     sizeof(seconds));
    (void)setsockopt(listen_fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds,
                     sizeof(seconds));
}

static void listeners_take(struct store_server *server,
                           const struct net_listeners *listeners)
{
    size_t i;

    for (i = 0; i < listeners->n; i++) {
        struct store_listener *listener = &server->listeners[i];
        socklen_t len = sizeof(listener->address);

        listener->item = (struct poll_item){ .fd = listeners->fds[i],
                                             .ready = listener_ready };
        listener->server = server;
        (void)getsockname(listener->item.fd,
                          (struct sockaddr *)&listener->address, &len);
        listener->loopback =
            net_is_loopback((struct sockaddr *)&listener->address);
        options_set(listener->item.fd);
    }
    server->n_listeners = listeners->n;
}

static int conns_create(struct store_server *server, uv_loop_t *loop,
                        const struct store_setup *setup)
{
    struct store_conns *conns = calloc(1, sizeof(*conns));

    if (conns == NULL) {
        return -ENOMEM;
    }
    conns->store = server->store;
    conns->demux = setup->demux;
    conns->complain = setup->complain;
    conns->complain_arg = setup->arg;
    server->conns = conns;
    server->n_open++;
    return store_conns_start(conns, loop, conns_closed, server);
}

int store_server_start(struct store_server *server, uv_loop_t *loop,
                       const struct store_setup *setup,
                       void (*on_closed)(struct store_server *server,
                                         void *arg),
                       void *arg, struct err *err)
{
    int rc;

    *server = (struct store_server){ .on_closed = on_closed, .arg = arg };
    (void)uv_timer_init(loop, &server->pause); /* cannot fail */
    server->pause.data = server;
    server->n_open = 1;
    store_peers_init(&server->peers, setup->is_ours, setup->arg);
    server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    server->store = store_create(&setup->conf);
    rc = server->store != NULL ? conns_create(server, loop, setup) : -ENOMEM;
    listeners_take(server, &setup->listeners);
    if (rc == 0) {
        rc = listeners_ask(server);
    }
    if (rc < 0) {
        store_server_stop(server); /* closes the sockets */
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

    store_peer_text(conn->item.fd, peer, sizeof(peer));
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

    LIST_FOREACH(conn, &server->conns->all, all)
    {
        say_waits_of(conn);
    }
}
