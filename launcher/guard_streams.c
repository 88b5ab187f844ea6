#include "launcher/guard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

/* Reads of one source at once: who still floods must be killed meanwhile. */
#define READS_AT_ONCE 16

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

static int source_add(struct guard_streams *streams, int fd, int target)
{
    if (streams->n == streams->cap) {
        size_t cap = streams->cap != 0 ? streams->cap * 2 : 16;
        struct guard_source *sources =
            realloc(streams->sources, cap * sizeof(*sources));

        if (sources == NULL) {
            return -ENOMEM;
        }
        streams->sources = sources;
        streams->cap = cap;
    }
    streams->sources[streams->n++] =
        (struct guard_source){ .fd = fd, .target = target };
    return 0;
}

static int pipe_make(int *read_out, int *write_out)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0) {
        return -errno;
    }
    /* Only our end: the worker's description is its own. */
    if (fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0) {
        (void)close(fds[0]);
        (void)close(fds[1]);
        return -EIO;
    }
    *read_out = fds[0];
    *write_out = fds[1];
    return 0;
}

/* The worker's side of a pseudo-terminal; by name before Linux 4.13. */
static int pty_peer(int master)
{
    char name[64];
    int fd = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (fd < 0 && ptsname_r(master, name, sizeof(name)) == 0) {
        fd = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    }
    return fd;
}

/*
 * Raw: what a worker writes is what we read. It gets the size of the terminal
 * that ours is, where it is one.
 */
static int pty_make(int ours, int *read_out, int *write_out)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct winsize size;
    struct termios modes;
    int peer = -1;

    if (master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0) {
        peer = pty_peer(master);
    }
    if (peer < 0 || tcgetattr(peer, &modes) < 0) {
        int rc = -errno;

        (void)close(peer);
        (void)close(master);
        return rc;
    }
    cfmakeraw(&modes);
    (void)tcsetattr(peer, TCSANOW, &modes);
    if (ioctl(ours, TIOCGWINSZ, &size) == 0) {
        (void)ioctl(master, TIOCSWINSZ, &size);
    }
    (void)fcntl(master, F_SETFL, O_NONBLOCK);
    *read_out = master;
    *write_out = peer;
    return 0;
}

/* One stream of a worker: fd_out stays -1 where it needs none. */
static int stream_open(struct guard_streams *streams,
                       const struct guard_stream *spec, int number,
                       struct guard_ends *ends, int *fd_out)
{
    int read_end = -1;
    int rc;

    if (spec->kind == GUARD_STREAM_PIPE) {
        rc = pipe_make(&read_end, fd_out);
    } else if (spec->kind == GUARD_STREAM_PTY) {
        rc = pty_make(number, &read_end, fd_out);
    } else {
        return 0;
    }
    if (rc == 0) {
        rc = source_add(streams, read_end, spec->shown ? number : -1);
        if (rc == 0) {
            ends->agent[ends->n_agent++] = read_end;
        } else {
            (void)close(read_end);
        }
    }
    return rc;
}

int guard_streams_open(struct guard_streams *streams,
                       const struct guard_stream spec[2],
                       struct guard_ends *ends_out)
{
    struct guard_ends ends = { .worker = { -1, -1 } };
    int rc = stream_open(streams, &spec[GUARD_OUT], STDOUT_FILENO, &ends,
                         &ends.worker[GUARD_OUT]);

    if (rc == 0) {
        rc = stream_open(streams, &spec[GUARD_ERR], STDERR_FILENO, &ends,
                         &ends.worker[GUARD_ERR]);
    }
    if (rc < 0) {
        guard_ends_close(&ends);
        return rc;
    }
    *ends_out = ends;
    return 0;
}

void guard_ends_close(struct guard_ends *ends)
{
    int i;

    for (i = 0; i < 2; i++) {
        if (ends->worker[i] >= 0) {
            (void)close(ends->worker[i]);
            ends->worker[i] = -1;
        }
    }
}

/*
 * A descriptor for our stdout or stderr on which a write never waits. The
 * flags of the one we have are shared with whoever started us, so it is opened
 * anew; not a regular file, whose position is in the old one, and which does
 * not wait anyway.
 */
static int sink_of(struct guard_streams *streams, int number)
{
    struct stat status;
    char path[32];

    if (streams->sinks[number] != 0) {
        return streams->sinks[number];
    }
    streams->sinks[number] = number;
    if (fstat(number, &status) == 0 && !S_ISREG(status.st_mode) &&
        !S_ISSOCK(status.st_mode)) {
        int fd;

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", number);
        fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd >= 0) {
            streams->sinks[number] = fd;
        }
    }
    return streams->sinks[number];
}

/*
 * As write(2), but never waiting: neither on a socket, nor where the sink could
 * not be opened anew. What poll calls writable takes PIPE_BUF bytes at least.
 */
static ssize_t sink_write(int fd, const void *data, size_t len)
{
    struct pollfd ready = { .fd = fd, .events = POLLOUT };
    ssize_t n = send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n >= 0 || errno != ENOTSOCK) {
        return n;
    }
    if (poll(&ready, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(fd, data,
                 fd <= STDERR_FILENO && len > PIPE_BUF ? PIPE_BUF : len);
}

/* How much of the rest is whole lines, or all that may go out now. */
static size_t ready_len(const struct guard_source *source, bool last)
{
    const uint8_t *end;

    if (last || source->fd < 0 || source->rest.len >= GUARD_LINE_MAX) {
        return source->rest.len;
    }
    if (source->rest.len == 0) {
        return 0;
    }
    end = memrchr(source->rest.data, '\n', source->rest.len);
    return end != NULL ? (size_t)(end + 1 - source->rest.data) : 0;
}

/* Write what may go out; true when something is left that has to wait. */
static bool source_write(struct guard_streams *streams,
                         struct guard_source *source, bool last)
{
    size_t self = (size_t)(source - streams->sources) + 1;
    size_t *owner;
    size_t len;

    if (source->target < 0) {
        source->rest.len = 0;
        return false;
    }
    owner = &streams->owners[source->target];
    while ((len = ready_len(source, last)) > 0) {
        ssize_t n;

        if (*owner != 0 && *owner != self) {
            return true;
        }
        n = sink_write(sink_of(streams, source->target), source->rest.data,
                       len);
        if (n < 0 && errno == EAGAIN) {
            return true;
        }
        if (n < 0 && errno != EINTR) {
            n = (ssize_t)len; /* there is nobody to read it */
        }
        if (n > 0) {
            *owner = (size_t)n < len ? self : 0;
            buf_consume(&source->rest, (size_t)n);
        }
    }
    return false;
}

/* Read once: true when there may be more. */
static bool source_read(struct guard_source *source)
{
    ssize_t n;

    if (buf_reserve(&source->rest, GUARD_LINE_MAX) < 0) {
        return false;
    }
    n = read(source->fd, source->rest.data + source->rest.len, GUARD_LINE_MAX);
    if (n > 0) {
        source->rest.len += (size_t)n;
        return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        (void)close(source->fd); /* a pseudo-terminal says EIO at its end */
        source->fd = -1;
    }
    return false;
}

static bool source_copy(struct guard_streams *streams,
                        struct guard_source *source, bool last)
{
    bool waits = source_write(streams, source, false);
    int left = READS_AT_ONCE;

    while (!waits && source->fd >= 0 && left-- > 0 && source_read(source)) {
        waits = source_write(streams, source, false);
    }
    if (!waits) {
        waits = source_write(streams, source, last);
    }
    return waits || source->fd >= 0;
}

bool guard_streams_copy(struct guard_streams *streams, bool last)
{
    bool more = false;
    size_t i;

    for (i = 0; i < streams->n; i++) {
        more = source_copy(streams, &streams->sources[i], last) || more;
    }
    return more;
}

void guard_streams_drop(struct guard_streams *streams)
{
    size_t i;

    for (i = 0; i < streams->n; i++) {
        if (streams->sources[i].fd >= 0) {
            (void)close(streams->sources[i].fd);
        }
        buf_destroy(&streams->sources[i].rest);
    }
    free(streams->sources);
    for (i = STDOUT_FILENO; i <= STDERR_FILENO; i++) {
        if (streams->sinks[i] > STDERR_FILENO) {
            (void)close(streams->sinks[i]);
        }
    }
    *streams = (struct guard_streams){ 0 };
}
