/*
 * What a store is measured against.
 *
 *   store_peer echo    libuv, and nothing but the bytes back
 *   store_peer raw     epoll, and the fixed answers to VALIDATE, PING and ADD
 *                      init/, without looking at what was asked; four listening
 *                      sockets
 *
 * Both print their port, and run until a signal ends them.
 */
#include "common/net.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#define RAW_LISTENERS 6

static void die(const char *what)
{
    (void)fprintf(stderr, "store_peer: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* --- echo
 * ------------------------------------------------------------------------ */

static char echo_buffer[64 * 1024];

static void echo_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(echo_buffer, sizeof(echo_buffer));
}

static void echo_closed(uv_handle_t *handle)
{
    free(handle);
}

static void echo_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    uv_buf_t piece;

    if (n < 0) {
        uv_close((uv_handle_t *)stream, echo_closed);
        return;
    }
    piece = uv_buf_init(buf->base, (unsigned)n);
    if (n > 0 && uv_try_write(stream, &piece, 1) != n) {
        die("a client does not read");
    }
}

static void echo_accept(uv_stream_t *listener, int status)
{
    uv_tcp_t *tcp = malloc(sizeof(*tcp));

    if (status < 0 || tcp == NULL) {
        die("accept");
    }
    (void)uv_tcp_init(listener->loop, tcp);
    if (uv_accept(listener, (uv_stream_t *)tcp) < 0) {
        die("accept");
    }
    (void)uv_tcp_nodelay(tcp, 1);
    (void)uv_read_start((uv_stream_t *)tcp, echo_alloc, echo_read);
}

static void echo_run(int fd)
{
    uv_tcp_t listener;

    if (uv_tcp_init(uv_default_loop(), &listener) < 0 ||
        uv_tcp_open(&listener, fd) < 0 ||
        uv_listen((uv_stream_t *)&listener, 4096, echo_accept) < 0) {
        die("listen");
    }
    (void)uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

/* --- raw
 * ------------------------------------------------------------------------- */

#define JOIN_LEN (5 + 5 + 1 + 8 + 5 + 8)

static unsigned char *raw_got; /* bytes had of each descriptor */

static void raw_accept(int epoll, int listener)
{
    const int on = 1;
    int fd;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >=
           0) {
        struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        raw_got[fd] = 0;
        (void)epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    }
}

static void raw_read(int fd)
{
    char data[1024];
    ssize_t n = recv(fd, data, sizeof(data), 0);

    if (n <= 0) {
        (void)close(fd);
        return;
    }
    raw_got[fd] = (unsigned char)(raw_got[fd] + n);
    if (raw_got[fd] >= JOIN_LEN) {
        memset(data, 0, sizeof(data));
        raw_got[fd] = 0;
        if (send(fd, data, 12, MSG_NOSIGNAL) != 12) {
            (void)close(fd);
        }
    }
}

static void raw_run(const struct net_listeners *listeners)
{
    struct epoll_event events[1024];
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct rlimit limit;
    size_t i;

    (void)getrlimit(RLIMIT_NOFILE, &limit);
    raw_got = calloc(limit.rlim_cur, 1);
    if (epoll < 0 || raw_got == NULL) {
        die("no memory");
    }
    for (i = 0; i < listeners->n; i++) {
        struct epoll_event event = { .events = EPOLLIN,
                                     .data.fd = listeners->fds[i] };

        (void)epoll_ctl(epoll, EPOLL_CTL_ADD, listeners->fds[i], &event);
    }
    for (;;) {
        int n = epoll_wait(epoll, events, 1024, -1);

        for (int e = 0; e < n; e++) {
            int fd = events[e].data.fd;
            bool listens = false;

            for (i = 0; i < listeners->n; i++) {
                listens |= fd == listeners->fds[i];
            }
            if (listens) {
                raw_accept(epoll, fd);
            } else {
                raw_read(fd);
            }
        }
    }
}

int main(int argc, char **argv)
{
    const struct net_where where = { .scope = NET_LOOPBACK };
    bool raw = argc == 2 && strcmp(argv[1], "raw") == 0;
    struct net_listeners listeners;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (net_listeners_open(&where, raw ? RAW_LISTENERS : 1, &listeners, NULL) <
        0) {
        die("listen");
    }
    (void)printf("127.0.0.1:%u\n", listeners.port);
    (void)fflush(stdout);
    if (raw) {
        raw_run(&listeners);
    } else {
        echo_run(listeners.fds[0]);
    }
    return 0;
}
