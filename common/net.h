/*
 * Listening sockets, made before anybody serves them, and addresses.
 */
#ifndef FLAUNCH_COMMON_NET_H
#define FLAUNCH_COMMON_NET_H

#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

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

/*
 * The same at one address of this machine, "10.0.0.1" or "fd00::1"; -EINVAL
 * where the text is none.
 */
int net_listen_at(const char *address, uint16_t port, int *fd_out,
                  uint16_t *port_out, struct err *err);

/* Whether an interface of this machine has that address. */
bool net_is_ours(const struct sockaddr *address);

/* "10.0.0.1" or "fd00::1", without a port; "" where it is neither. */
void net_address_text(const struct sockaddr *address, char *text_out,
                      size_t size);

/* The first port that an ordinary user may listen on. */
unsigned net_first_user_port(void);

#endif
