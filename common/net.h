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
    NET_ADDRESS,  /* one of this machine's, by its number */
};

/* Where to listen. Port 0: the kernel picks one. */
struct net_where {
    enum net_scope scope;
    const char *address; /* "10.0.0.1", "fd00::1"; for NET_ADDRESS */
    uint16_t port;
};

/*
 * Sockets that listen on one port. Each has a queue of its own for clients that
 * are not accepted yet; the kernel spreads them. A queue that runs over costs
 * its clients seconds, so a port that thousands come to at once has several.
 */
#define NET_LISTENERS_MAX 16
struct net_listeners {
    int fds[NET_LISTENERS_MAX]; /* close-on-exec, non-blocking */
    size_t n;                   /* 0: none */
    uint16_t port;              /* the one they have */
};

/* How many sockets do for so many clients at once. */
size_t net_listeners_for(uint64_t n_clients);

/*
 * Open n sockets, 1..NET_LISTENERS_MAX; the caller closes them.
 *
 * Returns 0 or a negative errno with a sentence; -EADDRINUSE when another
 * process has the port, -EINVAL where the address is none.
 */
int net_listeners_open(const struct net_where *where, size_t n,
                       struct net_listeners *out, struct err *err);

/* Other descriptors of the same sockets. 0 or a negative errno. */
int net_listeners_copy(const struct net_listeners *from,
                       struct net_listeners *out);

void net_listeners_close(struct net_listeners *listeners);

/* Whether only this machine reaches an address: 127.0.0.0/8 and ::1. */
bool net_is_loopback(const struct sockaddr *address);

/* Whether an interface of this machine has that address. */
bool net_is_ours(const struct sockaddr *address);

/* "10.0.0.1" or "fd00::1", without a port; "" where it is neither. */
void net_address_text(const struct sockaddr *address, char *text_out,
                      size_t size);

/* The port of an IPv4 or IPv6 address; 0 of another. */
uint16_t net_port_of(const struct sockaddr *address);

/* The first port that an ordinary user may listen on. */
unsigned net_first_user_port(void);

#endif
