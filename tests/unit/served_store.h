/*
 * A store that serves on a free port of 127.0.0.1, for tests that need one.
 */
#ifndef FLAUNCH_TESTS_UNIT_SERVED_STORE_H
#define FLAUNCH_TESTS_UNIT_SERVED_STORE_H

#include "common/net.h"
#include "common/store_host.h"

#include <stdlib.h>

struct fixture {
    struct store_host *host;
    uint16_t port;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    int fd;

    if (fixture == NULL ||
        net_listen(NET_LOOPBACK, 0, &fd, &fixture->port, NULL) < 0 ||
        store_host_start(fd, NULL, &fixture->host, NULL) < 0) {
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
