#include "launcher/streams.h"

#include "common/clock.h"
#include "common/log.h"
#include "launcher/log_prefix.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define EVENTS_AT_ONCE 64

static struct stream_source *source_of(struct streams *streams, uint32_t worker,
                                       int number)
{
    return &streams->sources[2 * (size_t)worker + (size_t)number];
}

/* --- time and room ------------------------------------------------------ */

/* Unfinished lines that have waited long enough on a terminal. */
static void partial_came(uv_timer_t *timer)
{
    struct streams *streams = timer->data;
    uint64_t now_ms = clock_ms();
    bool others = false;
    uint32_t i;

    for (i = 0; i < streams->n_sources; i++) {
        struct stream_source *source = &streams->sources[i];

        if (source->partial_ms == 0) {
            continue;
        }
        if (now_ms - source->partial_ms < STREAMS_PARTIAL_MS) {
            others = true;
        } else {
            stream_source_show_unfinished(source);
        }
    }
    if (others) {
        (void)uv_timer_start(timer, partial_came, STREAMS_PARTIAL_MS / 2, 0);
    }
}

/* A source has one that should not wait for ever. */
static void unfinished(void *arg)
{
    struct streams *streams = arg;

    if (!uv_is_active((uv_handle_t *)&streams->partial_timer)) {
        (void)uv_timer_start(&streams->partial_timer, partial_came,
                             STREAMS_PARTIAL_MS, 0);
    }
}

static bool all_at_end(const struct streams *streams)
{
    uint32_t i;

    for (i = 0; i < streams->n_sources; i++) {
        if (!stream_source_at_end(&streams->sources[i])) {
            return false;
        }
    }
    return true;
}

static void check_drained(struct streams *streams)
{
    if (streams->draining && all_at_end(streams)) {
        streams->draining = false;
        (void)uv_timer_stop(&streams->drain_timer);
        streams->events->drained(streams->arg);
    }
}

static size_t queued_bytes(struct streams *streams)
{
    size_t queued = 0;
    int i;

    for (i = 0; i < 2; i++) {
        if (streams->sinks[i].open) {
            queued += output_status(&streams->sinks[i].out).queued;
        }
    }
    return queued;
}

static void check_flushed(struct streams *streams)
{
    if (streams->flushing && queued_bytes(streams) == 0) {
        streams->flushing = false;
        streams->events->flushed(streams->arg);
    }
}

static void go_on(struct streams *streams)
{
    uint32_t i;

    for (i = 0; i < streams->n_sources; i++) {
        /* In turn, so that the first cannot take all the room. */
        struct stream_source *source =
            &streams->sources[(streams->turn + i) % streams->n_sources];

        if (streams->draining) {
            stream_source_finish(source);
        } else {
            stream_source_go_on(source);
        }
    }
    streams->turn++;
    if (!streams->draining && streams->reader.tailing) {
        tail_look_now(&streams->reader.tail);
    }
    check_drained(streams);
}

/* Tell of a sink's first error, on whichever stream still works. */
static void check_sink(struct streams *streams, struct stream_sink *sink)
{
    struct output_status status = output_status(&sink->out);

    if (status.error == 0 || sink->said) {
        return;
    }
    sink->said = true;
    if (status.error == EPIPE) {
        if (sink == streams->sink_of[GUARD_OUT]) {
            streams->events->reader_gone(streams->arg);
        }
        return; /* nobody reads what we could say of stderr */
    }
    log_line(LOG_WARN,
             "%s: %s; output that cannot be written is lost, the job goes on",
             sink->name, strerror(status.error));
}

static void news_came(uv_async_t *async)
{
    struct streams *streams = async->data;
    int i;

    for (i = 0; i < 2 && !streams->stopping; i++) {
        if (streams->sinks[i].open) {
            /* May end in streams_stop, where a reader is gone. */
            check_sink(streams, &streams->sinks[i]);
        }
    }
    if (streams->n_sources > 0) {
        go_on(streams);
    }
    if (!streams->stopping) {
        check_flushed(streams);
    }
}

/* Runs on an output's thread. */
static void output_event(void *arg)
{
    struct streams *streams = arg;

    (void)uv_async_send(&streams->async);
}

static void ends_came(uv_poll_t *poll, int status, int events)
{
    struct streams *streams = poll->data;
    struct epoll_event ready[EVENTS_AT_ONCE];
    int n = epoll_wait(streams->reader.epoll_fd, ready, EVENTS_AT_ONCE, 0);
    int i;

    (void)status;
    (void)events;
    for (i = 0; i < n; i++) {
        stream_source_read(ready[i].data.ptr);
    }
    check_drained(streams);
}

/* --- life --------------------------------------------------------------- */

static void log_writer(const char *line, size_t len, void *arg)
{
    streams_say(arg, line, len);
}

static void sink_open(struct streams *streams, int number,
                      const struct log_screen *screen)
{
    struct stream_sink *sink = &streams->sinks[number];

    *sink = (struct stream_sink){
        .name = number == GUARD_OUT ? "stdout" : "stderr",
        .terminal = screen->terminal[number],
        .open = true,
    };
    output_init(&sink->out, STDOUT_FILENO + number, output_event, streams);
    streams->sink_of[number] = sink;
}

static void part_closed(void *arg)
{
    struct streams *streams = arg;

    if (--streams->open_parts == 0) {
        if (streams->reader.epoll_fd >= 0) {
            (void)close(streams->reader.epoll_fd);
        }
        free(streams->reader.scratch);
        streams->events->closed(streams->arg);
    }
}

static void handle_closed(uv_handle_t *handle)
{
    part_closed(handle->data);
}

static void handle_open(struct streams *streams, uv_handle_t *handle)
{
    handle->data = streams;
    streams->open_parts++;
}

int streams_start(struct streams *streams, uv_loop_t *loop,
                  const struct log_screen *screen,
                  const struct streams_events *events, void *arg)
{
    int rc;

    *streams =
        (struct streams){ .events = events,
                          .arg = arg,
                          .filters = { { .fd = -1 }, { .fd = -1 } },
                          .reader = { .loop = loop,
                                      .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
                                      .scratch = malloc(STREAM_SCRATCH),
                                      .tail_closed = part_closed,
                                      .unfinished = unfinished,
                                      .arg = streams } };
    if (streams->reader.scratch == NULL || streams->reader.epoll_fd < 0) {
        rc = streams->reader.scratch == NULL ? -ENOMEM : -errno;
        goto failed;
    }
    rc = uv_async_init(loop, &streams->async, news_came);
    if (rc < 0) {
        goto failed;
    }
    handle_open(streams, (uv_handle_t *)&streams->async);
    (void)uv_timer_init(loop, &streams->partial_timer);
    handle_open(streams, (uv_handle_t *)&streams->partial_timer);
    (void)uv_timer_init(loop, &streams->drain_timer);
    handle_open(streams, (uv_handle_t *)&streams->drain_timer);
    sink_open(streams, GUARD_OUT, screen);
    if (screen->same) {
        streams->sink_of[GUARD_ERR] = &streams->sinks[GUARD_OUT];
    } else {
        sink_open(streams, GUARD_ERR, screen);
    }
    log_set_writer(log_writer, streams);
    rc = uv_poll_init(loop, &streams->poll, streams->reader.epoll_fd);
    if (rc == 0) {
        handle_open(streams, (uv_handle_t *)&streams->poll);
        rc = uv_poll_start(&streams->poll, UV_READABLE, ends_came);
    }
    return rc;
failed:
    free(streams->reader.scratch);
    if (streams->reader.epoll_fd >= 0) {
        (void)close(streams->reader.epoll_fd);
    }
    return rc;
}

/* --- an attempt --------------------------------------------------------- */

static int source_init(struct streams *streams, uint32_t worker, int number)
{
    const struct stream_plan *plan = streams->plan;
    const struct guard_stream *spec = &plan->streams[worker][number];
    const struct log_choice *choice = &plan->config->choices[worker];
    struct stream_source *source = source_of(streams, worker, number);
    const char *header = plan->headers[2 * (size_t)worker + (size_t)number];
    int bit = number == GUARD_OUT ? LOG_OUT : LOG_ERR;

    *source = (struct stream_source){
        .reader = &streams->reader,
        .kind = spec->kind,
        .fd = -1,
        .to_open =
            spec->kind == GUARD_STREAM_PIPE || spec->kind == GUARD_STREAM_PTY,
        .line = { .header = header,
                  .header_len = header != NULL ? strlen(header) : 0 },
        .sink = spec->shown ? streams->sink_of[number] : NULL,
        .filter =
            streams->filters[number].fd >= 0 ? &streams->filters[number] : NULL,
    };
    if (spec->kind == GUARD_STREAM_FILE && (choice->tee & bit) != 0 &&
        !choice->hidden) {
        return stream_source_open_file(source, spec->path);
    }
    return 0;
}

int streams_attempt(struct streams *streams, const struct stream_plan *plan)
{
    uint32_t n = plan->n_workers;
    uint32_t i;
    int rc = 0;

    streams->plan = plan;
    streams->reader.timestamps = plan->config->timestamps;
    streams->sources = calloc(2 * (size_t)n, sizeof(*streams->sources));
    if (streams->sources == NULL) {
        return -ENOMEM;
    }
    for (i = 0; i < 2; i++) {
        streams->filters[i].fd = -1;
        if (plan->filter_paths[i] != NULL && rc == 0) {
            rc = log_filter_open(&streams->filters[i], plan->config->filters[i],
                                 plan->filter_paths[i]);
        }
    }
    streams->n_sources = 2 * n;
    for (i = 0; i < n && rc == 0; i++) {
        rc = source_init(streams, i, GUARD_OUT);
        if (rc == 0) {
            rc = source_init(streams, i, GUARD_ERR);
        }
    }
    return rc;
}

void streams_take(struct streams *streams, uint32_t worker, const int *fds,
                  uint32_t n_fds)
{
    uint32_t used = 0;
    int i;

    for (i = 0; i < 2 && 2 * worker < streams->n_sources; i++) {
        struct stream_source *source = source_of(streams, worker, i);

        if (source->to_open && used < n_fds) {
            stream_source_attach(source, fds[used++]);
        }
    }
    while (used < n_fds) {
        (void)close(fds[used++]);
    }
}

void streams_worker_ended(struct streams *streams, uint32_t worker)
{
    if (2 * worker >= streams->n_sources) {
        return;
    }
    stream_source_end(source_of(streams, worker, GUARD_OUT), false);
    stream_source_end(source_of(streams, worker, GUARD_ERR), false);
    if (streams->reader.tailing) {
        tail_look_now(&streams->reader.tail);
    }
}

/* Somebody holds a pipe that should be at its end: read it no more. */
static void drain_came(uv_timer_t *timer)
{
    struct streams *streams = timer->data;
    bool blocked = false;
    uint32_t i;

    for (i = 0; i < streams->n_sources; i++) {
        struct stream_source *source = &streams->sources[i];

        if (source->blocked) {
            blocked = true;
        } else {
            stream_source_close(source);
        }
    }
    if (blocked) {
        (void)uv_timer_start(timer, drain_came, STREAMS_DRAIN_MS, 0);
    }
    check_drained(streams);
}

void streams_drain(struct streams *streams)
{
    uint32_t i;

    streams->draining = true;
    for (i = 0; i < streams->n_sources; i++) {
        stream_source_end(&streams->sources[i], true);
    }
    (void)uv_timer_start(&streams->drain_timer, drain_came, STREAMS_DRAIN_MS,
                         0);
    check_drained(streams);
}

const struct last_lines *streams_last(struct streams *streams, uint32_t worker)
{
    struct stream_source *source = source_of(streams, worker, GUARD_ERR);
    const char *path = streams->plan->streams[worker][GUARD_ERR].path;
    int fd;

    switch (source->kind) {
    case GUARD_STREAM_JOINED:
        return &source_of(streams, worker, GUARD_OUT)->last;
    case GUARD_STREAM_FILE:
        fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && source->last.len == 0) {
            (void)last_lines_read(&source->last, fd);
        }
        if (fd >= 0) {
            (void)close(fd);
        }
        return &source->last;
    default:
        return &source->last;
    }
}

void streams_forget(struct streams *streams)
{
    uint32_t i;

    for (i = 0; i < streams->n_sources; i++) {
        struct stream_source *source = &streams->sources[i];

        stream_source_close(source);
        buf_destroy(&source->rest);
        last_lines_destroy(&source->last);
    }
    free(streams->sources);
    streams->sources = NULL;
    streams->n_sources = 0;
    streams->draining = false;
    (void)uv_timer_stop(&streams->partial_timer);
    (void)uv_timer_stop(&streams->drain_timer);
    for (i = 0; i < 2; i++) {
        streams->sinks[i].line.last = NULL;
        if (streams->filters[i].fd >= 0) {
            log_filter_close(&streams->filters[i]);
        }
    }
}

/* --- our own words, and the end ----------------------------------------- */

void streams_say(struct streams *streams, const char *text, size_t len)
{
    struct stream_sink *sink = streams->sink_of[GUARD_ERR];
    struct buf *queue;
    size_t room;

    queue = output_lock(&sink->out, OUTPUT_MAX, &room);
    (void)lines_close(&sink->line, queue);
    (void)buf_append(queue, text, len);
    (void)output_unlock(&sink->out, false);
}

/* A terminal's prompt should stand at the beginning of a line. */
static void sink_finish_line(struct stream_sink *sink)
{
    struct buf *queue;
    size_t room;

    queue = output_lock(&sink->out, OUTPUT_MAX, &room);
    (void)lines_close(&sink->line, queue);
    (void)output_unlock(&sink->out, false);
}

void streams_flush(struct streams *streams)
{
    bool empty = true;
    int i;

    streams->flushing = true;
    for (i = 0; i < 2; i++) {
        struct stream_sink *sink = &streams->sinks[i];

        if (!sink->open) {
            continue;
        }
        if (sink->terminal) {
            sink_finish_line(sink);
        }
        empty = output_watch_empty(&sink->out) && empty;
    }
    if (empty) {
        check_flushed(streams);
    }
}

void streams_progress(struct streams *streams, uint64_t *written_out,
                      size_t *queued_out)
{
    uint64_t written = 0;
    int i;

    for (i = 0; i < 2; i++) {
        if (streams->sinks[i].open) {
            written += output_status(&streams->sinks[i].out).written;
        }
    }
    *written_out = written;
    *queued_out = queued_bytes(streams);
}

int streams_describe_losses(struct streams *streams, struct buf *out)
{
    char line[256];
    int rc = 0;
    int i;

    for (i = 0; i < 2 && rc == 0; i++) {
        struct stream_sink *sink = &streams->sinks[i];
        struct output_status status = { 0 };

        if (sink->open) {
            status = output_status(&sink->out);
        }
        if (status.lost > 0 && status.error != EPIPE) {
            (void)snprintf(line, sizeof(line),
                           "  lost: %" PRIu64 " bytes of %s: %s\n", status.lost,
                           sink->name, strerror(status.error));
            rc = buf_append(out, line, strlen(line));
        }
        if (streams->filters[i].lost > 0 && rc == 0) {
            (void)snprintf(line, sizeof(line),
                           "  lost: %" PRIu64 " bytes of a filtered log: %s\n",
                           streams->filters[i].lost,
                           strerror(streams->filters[i].error));
            rc = buf_append(out, line, strlen(line));
        }
    }
    return rc;
}

void streams_give_up(struct streams *streams)
{
    uint32_t i;

    for (i = 0; i < streams->n_sources; i++) {
        struct stream_source *source = &streams->sources[i];

        stream_source_close(source);
        source->to_open = false;
        source->blocked = false;
        buf_destroy(&source->rest);
    }
    check_drained(streams);
}

void streams_resize(struct streams *streams)
{
    uint32_t i;

    for (i = 0; i < streams->n_sources; i++) {
        struct stream_source *source = &streams->sources[i];
        int number = i % 2 == 0 ? STDOUT_FILENO : STDERR_FILENO;
        struct winsize size;

        if (source->kind == GUARD_STREAM_PTY && source->fd >= 0 &&
            ioctl(number, TIOCGWINSZ, &size) == 0) {
            (void)ioctl(source->fd, TIOCSWINSZ, &size);
        }
    }
}

void streams_stop(struct streams *streams)
{
    int i;

    if (streams->stopping || streams->open_parts == 0) {
        return;
    }
    streams->stopping = true;
    log_set_writer(NULL, NULL);
    streams_forget(streams);
    for (i = 0; i < 2; i++) {
        struct stream_sink *sink = &streams->sinks[i];

        if (sink->open) {
            output_end(&sink->out, output_status(&sink->out).queued == 0);
        }
    }
    uv_close((uv_handle_t *)&streams->async, handle_closed);
    uv_close((uv_handle_t *)&streams->partial_timer, handle_closed);
    uv_close((uv_handle_t *)&streams->drain_timer, handle_closed);
    if (streams->poll.data != NULL) {
        uv_close((uv_handle_t *)&streams->poll, handle_closed);
    }
    if (streams->reader.tailing) {
        streams->open_parts++;
        tail_stop(&streams->reader.tail);
    }
}
