/*
 * One listening socket, for tests that need no more.
 */
#ifndef FLAUNCH_TESTS_UNIT_LISTENING_H
#define FLAUNCH_TESTS_UNIT_LISTENING_H

#include "common/net.h"

static inline int listen_at(const struct net_where *where, int *fd_out,
                            uint16_t *port_out, struct err *err)
{
    struct net_listeners listeners = { .fds = { -1 } };
    int rc = net_listeners_open(where, 1, &listeners, err);

    *fd_out = listeners.fds[0];
    *port_out = listeners.port;
    return rc;
}

static inline int listen_one(enum net_scope scope, uint16_t port, int *fd_out,
                             uint16_t *port_out, struct err *err)
{
    const struct net_where where = { .scope = scope, .port = port };

    return listen_at(&where, fd_out, port_out, err);
}

#endif
