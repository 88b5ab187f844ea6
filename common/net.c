#include "common/net.h"

#include "common/io.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* One socket's queue is 4,096 long as kernels come, and clients of one job all
 * come at once. */
#define CLIENTS_PER_LISTENER 3000

static union address address_of(enum net_scope scope, int family, uint16_t port)
{
    union address address = { .any.sa_family = (sa_family_t)family };

    if (family == AF_INET6) {
        address.v6.sin6_port = htons(port);
        address.v6.sin6_addr = in6addr_any;
    } else {
        address.v4.sin_port = htons(port);
        address.v4.sin_addr.s_addr =
            htonl(scope == NET_LOOPBACK ? INADDR_LOOPBACK : INADDR_ANY);
    }
    return address;
}

/* Read an address's text: 0 or -EINVAL. */
static int address_parse(const char *text, uint16_t port, union address *out)
{
    union address address = { .any.sa_family = AF_INET };

    if (inet_pton(AF_INET, text, &address.v4.sin_addr) == 1) {
        address.v4.sin_port = htons(port);
        *out = address;
        return 0;
    }
    address.any.sa_family = AF_INET6;
    if (inet_pton(AF_INET6, text, &address.v6.sin6_addr) == 1) {
        address.v6.sin6_port = htons(port);
        *out = address;
        return 0;
    }
    return -EINVAL;
}

static int set_on(int fd, int option)
{
    const int on = 1;

    return setsockopt(fd, SOL_SOCKET, option, &on, sizeof(on));
}

/*
 * Bind and listen: the port it has, or a negative errno. The first of several
 * sockets is bound alone, so that it fails where somebody has the port; only
 * then does it share it.
 */
static int socket_listen(int fd, union address address, bool first,
                         bool several)
{
    bool v6 = address.any.sa_family == AF_INET6;
    socklen_t len = v6 ? sizeof(address.v6) : sizeof(address.v4);
    const int off = 0;

    /* SO_REUSEADDR lets a port be used again that only old connections hold. */
    if (set_on(fd, SO_REUSEADDR) < 0 ||
        (!first && set_on(fd, SO_REUSEPORT) < 0) ||
        (v6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0) ||
        bind(fd, &address.any, len) < 0 ||
        (first && several && set_on(fd, SO_REUSEPORT) < 0) ||
        listen(fd, SOMAXCONN) < 0 || getsockname(fd, &address.any, &len) < 0) {
        return -errno;
    }
    return ntohs(v6 ? address.v6.sin6_port : address.v4.sin_port);
}

static int socket_create(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    return fd < 0 ? -errno : fd;
}

unsigned net_first_user_port(void)
{
    char text[16];
    int n = io_read_text("/proc/sys/net/ipv4/ip_unprivileged_port_start", text,
                         sizeof(text));

    return n > 0 ? (unsigned)strtoul(text, NULL, 10) : IPPORT_RESERVED;
}

size_t net_listeners_for(uint64_t n_clients)
{
    uint64_t n = 1 + n_clients / CLIENTS_PER_LISTENER;

    return n < NET_LISTENERS_MAX ? (size_t)n : NET_LISTENERS_MAX;
}

/* One more socket at address: 0 or a negative errno. */
static int listeners_add(struct net_listeners *listeners, union address address,
                         bool several)
{
    int fd = socket_create(address.any.sa_family);
    int port;

    if (fd < 0) {
        return fd;
    }
    port = socket_listen(fd, address, listeners->n == 0, several);
    if (port < 0) {
        (void)close(fd);
        return port;
    }
    listeners->fds[listeners->n++] = fd;
    listeners->port = (uint16_t)port;
    return 0;
}

static int listeners_fill(struct net_listeners *listeners,
                          union address address, size_t n)
{
    int rc = 0;

    while (rc == 0 && listeners->n < n) {
        rc = listeners_add(listeners, address, n > 1);
        if (address.any.sa_family == AF_INET6) {
            address.v6.sin6_port = htons(listeners->port);
        } else {
            address.v4.sin_port = htons(listeners->port);
        }
    }
    return rc;
}

int net_listeners_open(const struct net_where *where, size_t n,
                       struct net_listeners *out, struct err *err)
{
    struct net_listeners listeners = { .port = where->port };
    union address address;
    int rc;

    if (where->scope == NET_ADDRESS) {
        if (address_parse(where->address, where->port, &address) < 0) {
            return err_set(err, -EINVAL, "%s is no address", where->address);
        }
    } else {
        address = address_of(where->scope,
                             where->scope == NET_ALL ? AF_INET6 : AF_INET,
                             where->port);
    }
    rc = listeners_fill(&listeners, address, n);
    if (rc == -EAFNOSUPPORT && where->scope == NET_ALL) {
        /* A kernel without IPv6. */
        rc = listeners_fill(&listeners,
                            address_of(NET_ALL, AF_INET, where->port), n);
    }
    if (rc < 0) {
        net_listeners_close(&listeners);
        return where->scope == NET_ADDRESS
                   ? err_sys(err, rc, "cannot listen on %s, port %u",
                             where->address, where->port)
                   : err_sys(err, rc, "cannot listen on port %u", where->port);
    }
    *out = listeners;
    return 0;
}

int net_listeners_copy(const struct net_listeners *from,
                       struct net_listeners *out)
{
    struct net_listeners copy = { .port = from->port };
    int rc;

    while (copy.n < from->n) {
        int fd = fcntl(from->fds[copy.n], F_DUPFD_CLOEXEC, 0);

        if (fd < 0) {
            rc = -errno;
            net_listeners_close(&copy);
            return rc;
        }
        copy.fds[copy.n++] = fd;
    }
    *out = copy;
    return 0;
}

void net_listeners_close(struct net_listeners *listeners)
{
    while (listeners->n > 0) {
        (void)close(listeners->fds[--listeners->n]);
    }
}

/* The same address, whatever their ports. */
static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    union address left = { .any.sa_family = AF_UNSPEC };
    union address right = left;

    if (a->sa_family != b->sa_family) {
        return false;
    }
    if (a->sa_family == AF_INET) {
        memcpy(&left.v4, a, sizeof(left.v4));
        memcpy(&right.v4, b, sizeof(right.v4));
        return left.v4.sin_addr.s_addr == right.v4.sin_addr.s_addr;
    }
    if (a->sa_family == AF_INET6) {
        memcpy(&left.v6, a, sizeof(left.v6));
        memcpy(&right.v6, b, sizeof(right.v6));
        return memcmp(&left.v6.sin6_addr, &right.v6.sin6_addr,
                      sizeof(left.v6.sin6_addr)) == 0;
    }
    return false;
}

bool net_is_loopback(const struct sockaddr *address)
{
    union address copy = { .any.sa_family = AF_UNSPEC };

    if (address->sa_family == AF_INET) {
        memcpy(&copy.v4, address, sizeof(copy.v4));
        return ntohl(copy.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (address->sa_family == AF_INET6) {
        memcpy(&copy.v6, address, sizeof(copy.v6));
        return IN6_IS_ADDR_LOOPBACK(&copy.v6.sin6_addr);
    }
    return false;
}

bool net_is_ours(const struct sockaddr *address)
{
    const struct ifaddrs *at;
    struct ifaddrs *list;
    bool found = net_is_loopback(address); /* no interface lists all of it */

    if (getifaddrs(&list) < 0) {
        return false;
    }
    for (at = list; at != NULL && !found; at = at->ifa_next) {
        found = at->ifa_addr != NULL && same_address(at->ifa_addr, address);
    }
    freeifaddrs(list);
    return found;
}

void net_address_text(const struct sockaddr *address, char *text_out,
                      size_t size)
{
    union address copy = { .any.sa_family = AF_UNSPEC };

    text_out[0] = '\0';
    if (address->sa_family == AF_INET) {
        memcpy(&copy.v4, address, sizeof(copy.v4));
        (void)inet_ntop(AF_INET, &copy.v4.sin_addr, text_out, (socklen_t)size);
    } else if (address->sa_family == AF_INET6) {
        memcpy(&copy.v6, address, sizeof(copy.v6));
        if (IN6_IS_ADDR_V4MAPPED(&copy.v6.sin6_addr)) {
            (void)inet_ntop(AF_INET, &copy.v6.sin6_addr.s6_addr[12], text_out,
                            (socklen_t)size);
        } else {
            (void)inet_ntop(AF_INET6, &copy.v6.sin6_addr, text_out,
                            (socklen_t)size);
        }
    }
}

uint16_t net_port_of(const struct sockaddr *address)
{
    struct sockaddr_in v4;

    if (address->sa_family != AF_INET && address->sa_family != AF_INET6) {
        return 0;
    }
    /* Both families have it at the same place. */
    memcpy(&v4, address, sizeof(v4));
    return ntohs(v4.sin_port);
}
