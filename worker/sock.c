#include "worker/sock.h"

#include "common/clock.h"
#include "common/resolve.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Wait until fd is ready: 0, -ETIMEDOUT or another negative errno. */
static int wait_ready(int fd, short events, uint64_t deadline_ms)
{
    struct pollfd pair = { .fd = fd, .events = events };

    for (;;) {
        int n = poll(&pair, 1, clock_poll_ms(deadline_ms));

        if (n > 0) {
            return 0;
        }
        if (n == 0) {
            return -ETIMEDOUT;
        }
        if (errno != EINTR) {
            return -errno;
        }
    }
}

int sock_send(int fd, const void *data, size_t len, uint64_t deadline_ms)
{
    const uint8_t *p = data;

    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        int rc;

        if (n > 0) {
            p += n;
            len -= (size_t)n;
            continue;
        }
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno != EAGAIN) {
            return -errno;
        }
        rc = wait_ready(fd, POLLOUT, deadline_ms);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int sock_receive_some(int fd, void *data, size_t size, uint64_t deadline_ms,
                      size_t *len_out)
{
    for (;;) {
        ssize_t n = recv(fd, data, size, MSG_DONTWAIT);
        int rc;

        if (n >= 0) {
            *len_out = (size_t)n;
            return 0;
        }
        if (errno == EINTR) {
            continue;
        }
        if (errno != EAGAIN) {
            return -errno;
        }
        rc = wait_ready(fd, POLLIN, deadline_ms);
        if (rc < 0) {
            return rc;
        }
    }
}

int sock_receive(int fd, void *data, size_t len, uint64_t deadline_ms)
{
    uint8_t *p = data;

    while (len > 0) {
        size_t n = 0;
        int rc = sock_receive_some(fd, p, len, deadline_ms, &n);

        if (rc < 0) {
            return rc;
        }
        if (n == 0) {
            return -ECONNRESET;
        }
        p += n;
        len -= n;
    }
    return 0;
}

/*
 * Connecting to a port of this host on which nobody listens, the kernel may
 * pick that very port for our end; TCP then connects the socket to itself.
 */
static bool is_connected_to_itself(int fd)
{
    struct sockaddr_storage own = { 0 };
    struct sockaddr_storage peer = { 0 };
    socklen_t own_len = sizeof(own);
    socklen_t peer_len = sizeof(peer);

    return getsockname(fd, (struct sockaddr *)&own, &own_len) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0 &&
           own_len == peer_len && memcmp(&own, &peer, own_len) == 0;
}

int sock_connect(const struct addrinfo *address, uint64_t deadline_ms)
{
    const int on = 1;
    int error = 0;
    socklen_t len = sizeof(error);
    int rc = 0;
    int fd = socket(address->ai_family,
                    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return -errno;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, address->ai_addr, address->ai_addrlen) < 0) {
        rc = -errno;
    }
    if (rc == -EINPROGRESS) {
        rc = wait_ready(fd, POLLOUT, deadline_ms);
        if (rc == 0 &&
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0) {
            rc = -error;
        }
    }
    if (rc == 0 && is_connected_to_itself(fd)) {
        rc = -ECONNREFUSED;
    }
    if (rc < 0) {
        (void)close(fd);
        return rc;
    }
    return fd;
}

int sock_connect_host(const char *host, uint16_t port, uint64_t deadline_ms,
                      const char *what, struct err *err)
{
    const struct addrinfo *address;
    struct addrinfo *list;
    int fd = -EHOSTUNREACH;
    int rc = resolve_host(host, port, deadline_ms, &list, err);

    if (rc < 0) {
        return rc;
    }
    for (address = list; address != NULL && fd < 0;
         address = address->ai_next) {
        fd = sock_connect(address, deadline_ms);
    }
    freeaddrinfo(list);
    return fd < 0 ? err_sys(err, fd, "%s %s port %u", what, host, port) : fd;
}
