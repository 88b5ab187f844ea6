/*
 * The listening socket of the store, made before anybody serves it.
 */
#ifndef FLAUNCH_COMMON_NET_H
#define FLAUNCH_COMMON_NET_H

#include "common/err.h"

#include <stdint.h>

enum net_scope {
    NET_LOOPBACK, /* 127.0.0.1 */
    NET_ALL,      /* every address, IPv6 and IPv4 */
};

/*
 * A TCP socket that listens.
 *
 * port      0: the kernel picks one
 * fd_out    close-on-exec; the caller's
 * port_out  the port it has
 *
 * Returns 0 or a negative errno with a sentence; -EADDRINUSE when another
 * process has the port.
 */
int net_listen(enum net_scope scope, uint16_t port, int *fd_out,
               uint16_t *port_out, struct err *err);

/* The first port that an ordinary user may listen on. */
unsigned net_first_user_port(void);

#endif
