#include "launcher/stream_source.h"

#include "common/clock.h"
#include "launcher/log_prefix.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Reads of one source before the others have their turn. */
#define READS_AT_ONCE 4
#define READS_AT_END 1024

bool stream_source_at_end(const struct stream_source *source)
{
    return source->fd < 0 && !source->to_open && source->rest.len == 0;
}

/* Whether data holds what may go out now, and waits only for room. */
static bool has_piece(const uint8_t *data, size_t len, bool final)
{
    return len > 0 &&
           (final || len >= LINES_MAX || memchr(data, '\n', len) != NULL ||
            memchr(data, '\r', len) != NULL);
}

/* What is left of data is an unfinished line: on a terminal it waits only a
 * while. */
static void note_partial(struct stream_source *source, size_t len)
{
    if (len == 0 || source->sink == NULL || !source->sink->terminal) {
        source->partial_ms = 0;
    } else if (source->partial_ms == 0) {
        source->partial_ms = clock_ms();
        source->reader->unfinished(source->reader->arg);
    }
}

/*
 * Pass on what may go out of data: how much was taken. What is left waits for
 * room (source->blocked) or for the end of its line.
 */
static size_t source_pass(struct stream_source *source, const uint8_t *data,
                          size_t len, bool final)
{
    struct stream_sink *sink = source->sink;
    bool teed = source->kind == GUARD_STREAM_FILE;
    char stamp[LOG_STAMP_MAX] = "";
    struct buf *queue;
    ptrdiff_t taken;
    size_t room;

    source->blocked = false;
    if (sink == NULL) {
        return len;
    }
    if (source->reader->timestamps) {
        log_prefix_stamp(stamp, sizeof(stamp));
    }
    queue = output_lock(&sink->out, teed ? OUTPUT_MAX_TEED : OUTPUT_MAX, &room);
    if (teed && room < OUTPUT_MAX) {
        room = 0; /* a few large writes, not many small ones */
    }
    taken = lines_take(&sink->line, &source->line, data, len, final, stamp,
                       queue, room);
    if (taken < 0) {
        taken = (ptrdiff_t)len; /* without memory it is lost */
    }
    source->blocked = has_piece(data + taken, len - (size_t)taken, final);
    if (output_unlock(&sink->out, source->blocked) < 0) {
        taken = (ptrdiff_t)len;
        source->blocked = false;
    }
    if (taken > 0) {
        source->partial_ms = 0; /* what is left is another line */
    }
    if (!source->blocked) {
        note_partial(source, len - (size_t)taken);
    }
    return (size_t)taken;
}

static void source_watch(struct stream_source *source, bool on)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = source };

    (void)epoll_ctl(source->reader->epoll_fd,
                    on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, source->fd, &event);
}

void stream_source_close(struct stream_source *source)
{
    if (source->fd < 0) {
        return;
    }
    if (source->kind == GUARD_STREAM_FILE) {
        tail_remove(&source->reader->tail, &source->tail);
    } else {
        /* The guard has a duplicate, so closing ours does not do it. */
        source_watch(source, false);
    }
    (void)close(source->fd);
    source->fd = -1;
}

/* --- pipes and pseudo-terminals ----------------------------------------- */

/* Keep what was not taken. Without memory it is lost. */
static void keep_rest(struct stream_source *source, const uint8_t *data,
                      size_t len)
{
    source->rest.len = 0;
    if (len > 0) {
        (void)buf_append(&source->rest, data, len);
    } else {
        buf_destroy(&source->rest);
    }
}

/* Pass on what waits; true when it is through. */
static bool pipe_pass_rest(struct stream_source *source, bool final)
{
    size_t len = source->rest.len;
    size_t taken;

    if (len == 0) {
        return true;
    }
    memcpy(source->reader->scratch, source->rest.data, len);
    taken = source_pass(source, source->reader->scratch, len, final);
    keep_rest(source, source->reader->scratch + taken, len - taken);
    return !source->blocked;
}

/* Read once, behind the rest, and pass on; false when nothing came. */
static bool pipe_read_once(struct stream_source *source)
{
    uint8_t *data = source->reader->scratch;
    size_t len = source->rest.len;
    size_t taken;
    ssize_t n;

    if (len > 0) {
        memcpy(data, source->rest.data, len);
    }
    n = read(source->fd, data + len, LINES_MAX);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        if (source->ended) {
            (void)pipe_pass_rest(source, true); /* nobody will finish it */
        }
        return false;
    }
    if (n <= 0) {
        stream_source_close(source); /* a pseudo-terminal says EIO at its end */
        n = 0;
    }
    last_lines_add(&source->last, data + len, (size_t)n);
    len += (size_t)n;
    taken = source_pass(source, data, len, source->fd < 0);
    keep_rest(source, data + taken, len - taken);
    return source->fd >= 0;
}

/*
 * Read up to n_reads times. A source that is blocked is not watched: what it
 * has would wake us for ever.
 */
static void pipe_read(struct stream_source *source, int n_reads)
{
    bool more = true;

    while (more && n_reads-- > 0 && !source->blocked) {
        more = pipe_read_once(source);
    }
    if (source->blocked && source->fd >= 0) {
        source_watch(source, false);
    }
}

/* How much to read at once: of one that has ended all there is, which is not
 * much, so that its unfinished line is known. */
static int reads_of(const struct stream_source *source)
{
    return source->ended ? READS_AT_END : READS_AT_ONCE;
}

/* There may be room again. */
static void pipe_go_on(struct stream_source *source)
{
    if (!source->blocked || !pipe_pass_rest(source, source->fd < 0)) {
        return;
    }
    if (source->fd >= 0) {
        source_watch(source, true);
        pipe_read(source, reads_of(source));
    }
}

/* --- files we tee ------------------------------------------------------- */

static void tail_filter(struct stream_source *source, const uint8_t *data,
                        size_t len)
{
    if (source->filter != NULL && len > 0) {
        log_filter_write(source->filter, source->line.header,
                         source->line.header_len, data, len);
    }
}

static enum tail_look tail_look(void *owner)
{
    struct stream_source *source = owner;
    uint8_t *data = source->reader->scratch;

    for (;;) {
        ssize_t n = pread(source->fd, data, LINES_MAX, (off_t)source->offset);
        size_t taken;

        if (n <= 0) {
            note_partial(source, 0);
            return TAIL_QUIET;
        }
        /* Only what the file ends with is unfinished. */
        taken = source_pass(source, data, (size_t)n,
                            source->ended && (size_t)n < LINES_MAX);
        source->offset += taken;
        tail_filter(source, data, taken);
        if (source->blocked) {
            return TAIL_FULL;
        }
        if (taken < (size_t)n && (size_t)n < LINES_MAX) {
            return TAIL_QUIET; /* an unfinished line; it is read again */
        }
    }
}

int stream_source_open_file(struct stream_source *source, const char *path)
{
    struct stream_reader *reader = source->reader;

    source->fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (source->fd < 0) {
        return -errno;
    }
    if (!reader->tailing) {
        /* Only now: seldom asked for, and not free. */
        tail_start(&reader->tail, reader->loop, tail_look, reader->tail_closed,
                   reader->arg);
        reader->tailing = true;
    }
    source->tail.fd = source->fd;
    source->tail.owner = source;
    tail_add(&reader->tail, &source->tail);
    return 0;
}

/* A file's writers are gone: what is left of it goes out. */
static void tail_finish(struct stream_source *source)
{
    if (source->fd >= 0 && tail_look(source) == TAIL_QUIET) {
        stream_source_close(source);
    }
}

/* --- both --------------------------------------------------------------- */

void stream_source_show_unfinished(struct stream_source *source)
{
    if (source->kind == GUARD_STREAM_FILE) {
        bool ended = source->ended;

        source->ended = true; /* for this look */
        (void)tail_look(source);
        source->ended = ended;
    } else {
        (void)pipe_pass_rest(source, true);
    }
}

void stream_source_go_on(struct stream_source *source)
{
    if (source->kind != GUARD_STREAM_FILE) {
        pipe_go_on(source);
    }
}

void stream_source_finish(struct stream_source *source)
{
    if (source->kind == GUARD_STREAM_FILE) {
        tail_finish(source);
    } else {
        pipe_go_on(source);
    }
}

void stream_source_read(struct stream_source *source)
{
    pipe_read(source, reads_of(source));
}

void stream_source_attach(struct stream_source *source, int fd)
{
    source->to_open = false;
    source->fd = fd;
    source_watch(source, true);
}

/* No process of the worker is expected to write: unfinished lines go out. */
void stream_source_end(struct stream_source *source, bool for_good)
{
    source->ended = true;
    source->to_open = source->to_open && !for_good;
    if (source->kind == GUARD_STREAM_FILE) {
        if (for_good) {
            tail_finish(source);
        } else if (source->fd >= 0) {
            source->tail.hot = true;
        }
        return;
    }
    if (source->fd >= 0 && !source->blocked) {
        pipe_read(source, reads_of(source));
    }
}
