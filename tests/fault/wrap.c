#include "tests/fault/wrap.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <uv.h>

static atomic_long calls;
static atomic_long fail_at;
static atomic_bool counting;
static atomic_bool failed;

void wrap_start(long nth)
{
    atomic_store(&calls, 0);
    atomic_store(&fail_at, nth);
    atomic_store(&failed, false);
    atomic_store(&counting, true);
}

long wrap_stop(void)
{
    atomic_store(&counting, false);
    return atomic_load(&calls);
}

bool wrap_failed(void)
{
    return atomic_load(&failed);
}

static bool now(void)
{
    if (!atomic_load(&counting) ||
        atomic_fetch_add(&calls, 1) + 1 != atomic_load(&fail_at)) {
        return false;
    }
    atomic_store(&failed, true);
    return true;
}

/* __real_NAME is the function, __wrap_NAME stands in front of it. */
#define WRAP(type, failure, name, parameters, arguments)                       \
    type __real_##name parameters;                                             \
    type __wrap_##name parameters;                                             \
    type __wrap_##name parameters                                              \
    {                                                                          \
        return now() ? (failure) : __real_##name arguments;                    \
    }

WRAP(void *, NULL, malloc, (size_t size), (size))
WRAP(void *, NULL, calloc, (size_t n, size_t size), (n, size))
WRAP(void *, NULL, realloc, (void *old, size_t size), (old, size))
WRAP(char *, NULL, strdup, (const char *text), (text))
WRAP(int, UV_EMFILE, uv_async_init,
     (uv_loop_t * loop, uv_async_t *async, uv_async_cb callback),
     (loop, async, callback))
WRAP(int, UV_EMFILE, uv_loop_init, (uv_loop_t * loop), (loop))
WRAP(int, UV_EINVAL, uv_tcp_open, (uv_tcp_t * tcp, uv_os_sock_t fd), (tcp, fd))
WRAP(int, UV_EINVAL, uv_read_start,
     (uv_stream_t * stream, uv_alloc_cb alloc, uv_read_cb callback),
     (stream, alloc, callback))
WRAP(int, UV_ENOMEM, uv_write,
     (uv_write_t * write, uv_stream_t *stream, const uv_buf_t bufs[],
      unsigned n, uv_write_cb callback),
     (write, stream, bufs, n, callback))
WRAP(int, UV_ECONNRESET, uv_try_write,
     (uv_stream_t * stream, const uv_buf_t bufs[], unsigned n),
     (stream, bufs, n))
WRAP(int, UV_EMFILE, uv_poll_init, (uv_loop_t * loop, uv_poll_t *poll, int fd),
     (loop, poll, fd))
WRAP(int, UV_EINVAL, uv_poll_start,
     (uv_poll_t * poll, int events, uv_poll_cb callback),
     (poll, events, callback))
WRAP(int, UV_EMFILE, uv_signal_init, (uv_loop_t * loop, uv_signal_t *handle),
     (loop, handle))
WRAP(int, UV_EINVAL, uv_signal_start,
     (uv_signal_t * handle, uv_signal_cb callback, int signo),
     (handle, callback, signo))
WRAP(int, EAGAIN, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attributes,
      void *(*run)(void *), void *arg),
     (thread, attributes, run, arg))
WRAP(int, (errno = EMFILE, -1), accept4,
     (int listener, struct sockaddr *address, socklen_t *len, int flags),
     (listener, address, len, flags))
WRAP(int, (errno = EMFILE, -1), epoll_create1, (int flags), (flags))
WRAP(int, (errno = ENOMEM, -1), epoll_ctl,
     (int epoll, int op, int fd, struct epoll_event *event),
     (epoll, op, fd, event))
