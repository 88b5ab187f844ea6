/*
 * A store that serves on a free port of 127.0.0.1, for tests that need one.
 */
#ifndef FLAUNCH_TESTS_UNIT_SERVED_STORE_H
#define FLAUNCH_TESTS_UNIT_SERVED_STORE_H

#include "common/store_host.h"

#include <stdlib.h>

struct fixture {
    struct store_host *host;
    uint16_t port;
};

/* Serve at all addresses of scope, with limits of conf (NULL: the default). */
static inline int serve_store(enum net_scope scope,
                              const struct store_conf *conf,
                              const struct port_demux *demux,
                              struct store_host **host_out, uint16_t *port_out)
{
    const struct net_where where = { .scope = scope };
    struct store_setup setup = { .conf = STORE_CONF_DEFAULT, .demux = demux };
    int rc = net_listeners_open(&where, 1, &setup.listeners, NULL);

    *port_out = setup.listeners.port;
    if (rc < 0) {
        return rc;
    }
    if (conf != NULL) {
        setup.conf = *conf;
    }
    return store_host_start(&setup, host_out, NULL);
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    if (fixture == NULL || serve_store(NET_LOOPBACK, NULL, NULL, &fixture->host,
                                       &fixture->port) < 0) {
        return -1;
    }
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    store_host_stop(fixture->host);
    free(fixture);
    return 0;
}

#endif
