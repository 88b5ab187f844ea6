/*
 * One stream of one worker: read from a pipe, a pseudo-terminal or a file that
 * the worker writes, passed on in whole lines to one of our outputs as far as
 * that has room.
 */
#ifndef FLAUNCH_LAUNCHER_STREAM_SOURCE_H
#define FLAUNCH_LAUNCHER_STREAM_SOURCE_H

#include "launcher/guard_proto.h"
#include "launcher/last_lines.h"
#include "launcher/lines.h"
#include "launcher/log_filter.h"
#include "launcher/output.h"
#include "launcher/tail.h"

/* Room for what a source has kept, and what is read behind it. */
#define STREAM_SCRATCH ((size_t)2 * LINES_MAX)

/* What all sources share. */
struct stream_reader {
    uv_loop_t *loop;
    int epoll_fd;     /* watches all read ends; data.ptr is the source */
    uint8_t *scratch; /* STREAM_SCRATCH bytes */
    bool timestamps;
    struct tail tail;
    bool tailing; /* tail was started */
    void (*tail_closed)(void *arg);
    /* A source has an unfinished line that should be shown after a while. */
    void (*unfinished)(void *arg);
    void *arg;
};

/* One of our own outputs. */
struct stream_sink {
    struct output out;
    struct line_sink line;
    const char *name; /* "stdout" */
    bool terminal;
    bool open;
    bool said; /* its first error was told */
};

/* One stream of one worker. */
struct stream_source {
    struct stream_reader *reader;
    enum guard_stream_kind kind;
    int fd;              /* a read end, or a file we tail; -1: at its end */
    bool to_open;        /* its read end comes with SPAWNED */
    bool blocked;        /* it waits for room */
    bool ended;          /* its worker has: an unfinished line goes out */
    struct buf rest;     /* of a pipe: read and not passed on */
    uint64_t offset;     /* of a file: passed on up to here */
    uint64_t partial_ms; /* since when it waits; 0: not */
    struct tail_file tail;
    struct line_source line;
    struct last_lines last;
    struct stream_sink *sink;  /* NULL: shown nowhere */
    struct log_filter *filter; /* lines that go to a file as well; or NULL */
};

/* Whether nothing more will come of it, and all is passed on. */
bool stream_source_at_end(const struct stream_source *source);

/* Take over a read end, non-blocking. */
void stream_source_attach(struct stream_source *source, int fd);

/* Follow a file: 0 or a negative errno. */
int stream_source_open_file(struct stream_source *source, const char *path);

/* epoll says that there is something to read. */
void stream_source_read(struct stream_source *source);

/* There may be room again. Files are looked at by tail_look_now. */
void stream_source_go_on(struct stream_source *source);

/* The same when nobody writes any more: at its end a source is closed. */
void stream_source_finish(struct stream_source *source);

/*
 * Its worker has ended, so an unfinished line goes out. for_good: and so have
 * all who could write.
 */
void stream_source_end(struct stream_source *source, bool for_good);

/* Show an unfinished line now. */
void stream_source_show_unfinished(struct stream_source *source);

/* Read it no more. What it has kept stays. */
void stream_source_close(struct stream_source *source);

#endif
