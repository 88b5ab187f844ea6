#include "common/net.h"

#include "common/io.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <netinet/in.h>
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
