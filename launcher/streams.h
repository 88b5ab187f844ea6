/*
 * The workers' output on its way to ours: pipes, pseudo-terminals and the
 * files we tee, through whole lines, into the queues of our stdout and stderr.
 * A full queue stops the reading, never the loop.
 *
 * Life: streams_start, streams_stop, on_closed. Between them, per attempt:
 * streams_attempt, streams_take, streams_worker_ended, streams_drain,
 * streams_forget.
 */
#ifndef FLAUNCH_LAUNCHER_STREAMS_H
#define FLAUNCH_LAUNCHER_STREAMS_H

#include "launcher/stream_plan.h"
#include "launcher/stream_source.h"

#include <uv.h>

/* After its last process is gone a pipe may still be held by somebody else. */
#define STREAMS_DRAIN_MS 1000
/* An unfinished line appears on a terminal after this time. */
#define STREAMS_PARTIAL_MS 100

struct streams_events {
    /* streams_drain is through. */
    void (*drained)(void *arg);
    /* streams_flush is through. */
    void (*flushed)(void *arg);
    /* The reader of our stdout is gone. Runs once. */
    void (*reader_gone)(void *arg);
    void (*closed)(void *arg);
};

struct streams {
    uv_poll_t poll;   /* on the reader's epoll_fd */
    uv_async_t async; /* news from the outputs' threads */
    uv_timer_t partial_timer;
    uv_timer_t drain_timer;
    struct stream_reader reader;
    int open_parts;
    bool stopping;
    struct stream_sink sinks[2];
    struct stream_sink *sink_of[2]; /* by stream number */
    struct stream_source *sources;  /* two for each worker */
    uint32_t n_sources;
    uint32_t turn;                /* who is first when there is room */
    struct log_filter filters[2]; /* by stream number; fd -1: none */
    bool draining;
    bool flushing;
    const struct stream_plan *plan;
    const struct streams_events *events;
    void *arg;
};

/*
 * Open. From here on log lines go through the queue of stderr. Returns 0 or a
 * negative errno; closed comes after streams_stop where anything was opened
 * (streams->open_parts).
 */
int streams_start(struct streams *streams, uv_loop_t *loop,
                  const struct log_screen *screen,
                  const struct streams_events *events, void *arg);

/* Prepare for an attempt; plan lives until streams_forget. 0 or an errno. */
int streams_attempt(struct streams *streams, const struct stream_plan *plan);

/* The read ends that came with a worker's SPAWNED; they are ours now. */
void streams_take(struct streams *streams, uint32_t worker, const int *fds,
                  uint32_t n_fds);

/* A worker has ended: what it left unfinished goes out. */
void streams_worker_ended(struct streams *streams, uint32_t worker);

/*
 * No process of the attempt is left: drained runs when everything is read, or
 * after STREAMS_DRAIN_MS; at once where nothing is left to read.
 */
void streams_drain(struct streams *streams);

/* The last lines of a worker's stderr, or of both where they are one. */
const struct last_lines *streams_last(struct streams *streams, uint32_t worker);

/* Forget the attempt. */
void streams_forget(struct streams *streams);

/* flushed runs when everything queued is written; at once where it is. */
void streams_flush(struct streams *streams);

/* Append text of our own to stderr, whole lines. */
void streams_say(struct streams *streams, const char *text, size_t len);

/* Bytes written so far, and bytes that wait, by all outputs. */
void streams_progress(struct streams *streams, uint64_t *written_out,
                      size_t *queued_out);

/* One line for each of our outputs that failed. 0 or -ENOMEM. */
int streams_describe_losses(struct streams *streams, struct buf *out);

/* Read nothing more of the attempt, whatever is left: drained runs now. */
void streams_give_up(struct streams *streams);

/* Give the pseudo-terminals the size of our terminal. */
void streams_resize(struct streams *streams);

/*
 * Close. Whoever still waits for a reader is left behind, and log lines go
 * straight to stderr again.
 */
void streams_stop(struct streams *streams);

#endif
