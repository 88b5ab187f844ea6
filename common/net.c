#include "common/net.h"

#include "common/io.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

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

/* Bind and listen: the port it has, or a negative errno. */
static int socket_listen(int fd, union address address)
{
    bool v6 = address.any.sa_family == AF_INET6;
    socklen_t len = v6 ? sizeof(address.v6) : sizeof(address.v4);
    const int off = 0;
    const int on = 1;

    /* SO_REUSEADDR lets a port be used again that only old connections hold. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        (v6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0) ||
        bind(fd, &address.any, len) < 0 || listen(fd, SOMAXCONN) < 0 ||
        getsockname(fd, &address.any, &len) < 0) {
        return -errno;
    }
    return ntohs(v6 ? address.v6.sin6_port : address.v4.sin_port);
}

unsigned net_first_user_port(void)
{
    char text[16];
    int n = io_read_text("/proc/sys/net/ipv4/ip_unprivileged_port_start", text,
                         sizeof(text));

    return n > 0 ? (unsigned)strtoul(text, NULL, 10) : IPPORT_RESERVED;
}

int net_listen(enum net_scope scope, uint16_t port, int *fd_out,
               uint16_t *port_out, struct err *err)
{
    int family = scope == NET_ALL ? AF_INET6 : AF_INET;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc;

    if (fd < 0 && scope == NET_ALL) {
        family = AF_INET; /* a kernel without IPv6 */
        fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    }
    if (fd < 0) {
        return err_sys(err, -errno, "cannot make a socket for the store");
    }
    rc = socket_listen(fd, address_of(scope, family, port));
    if (rc < 0) {
        (void)close(fd);
        return err_sys(err, rc, "cannot listen on port %u", port);
    }
    *fd_out = fd;
    *port_out = (uint16_t)rc;
    return 0;
}

int net_listen_at(const char *address, uint16_t port, int *fd_out,
                  uint16_t *port_out, struct err *err)
{
    struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_PASSIVE,
                              .ai_socktype = SOCK_STREAM };
    union address at = { .any.sa_family = AF_UNSPEC };
    struct addrinfo *list;
    int fd;
    int rc;

    if (getaddrinfo(address, NULL, &hints, &list) != 0) {
        return err_set(err, -EINVAL, "%s is no address", address);
    }
    memcpy(&at, list->ai_addr,
           list->ai_addrlen < sizeof(at) ? list->ai_addrlen : sizeof(at));
    freeaddrinfo(list);
    if (at.any.sa_family == AF_INET6) {
        at.v6.sin6_port = htons(port);
    } else {
        at.v4.sin_port = htons(port);
    }
    fd =
        socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    rc = fd >= 0 ? socket_listen(fd, at) : -errno;
    if (rc < 0) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return err_sys(err, rc, "cannot listen on %s, port %u", address, port);
    }
    *fd_out = fd;
    *port_out = (uint16_t)rc;
    return 0;
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

/* All of 127.0.0.0/8 is ours, though no interface lists it. */
static bool is_loopback(const struct sockaddr *address)
{
    union address copy = { .any.sa_family = AF_UNSPEC };

    if (address->sa_family != AF_INET) {
        return false;
    }
    memcpy(&copy.v4, address, sizeof(copy.v4));
    return ntohl(copy.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool net_is_ours(const struct sockaddr *address)
{
    const struct ifaddrs *at;
    struct ifaddrs *list;
    bool found = is_loopback(address);

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
