/*
 * Our own stdout, stderr, or a file of ours: a bounded queue, and a thread
 * that writes it. A reader that stalls stops that thread and nothing else.
 *
 * The descriptor's flags are never touched, since they are shared with
 * whoever started us; one that comes non-blocking loses nothing.
 */
#ifndef FLAUNCH_LAUNCHER_OUTPUT_H
#define FLAUNCH_LAUNCHER_OUTPUT_H

#include "common/buf.h"

#include <pthread.h>

/*
 * Most bytes in the queue and under way: a line of 64 KiB with its prefix
 * fits. What is in a file as well, and so cannot be lost with us, may take
 * more, which spares wake-ups of the thread.
 */
#define OUTPUT_MAX ((size_t)72 * 1024)
#define OUTPUT_MAX_TEED ((size_t)264 * 1024)

/* What a person is told of an output, and what the end waits for. */
struct output_status {
    size_t queued;    /* bytes not written yet */
    uint64_t written; /* bytes */
    uint64_t lost;    /* bytes that could not be written */
    int error;        /* the first error, a positive errno; 0: none */
};

struct output {
    int fd;
    pthread_t thread;
    bool started; /* the thread exists: there was something to write */
    pthread_mutex_t lock;
    pthread_cond_t more;
    bool waiting;    /* the thread waits for more */
    bool ending;     /* the thread ends when the queue is empty */
    bool want_room;  /* tell when room was made */
    bool want_empty; /* tell when everything is written */
    struct buf fill;
    struct buf busy; /* the thread's */
    size_t busy_len; /* of it, not written yet */
    struct output_status status;
    void (*event)(void *arg);
    void *arg;
};

/*
 * Prepare; event(arg) runs on the thread when there is more room after an
 * output_unlock that wanted it, at the first error, and when the queue is
 * empty after output_watch_empty. It must not call back.
 */
void output_init(struct output *output, int fd, void (*event)(void *arg),
                 void *arg);

/*
 * Lock the queue and return it for appending, at most *room_out bytes, so
 * that it holds no more than max; then output_unlock. What must be said may
 * exceed the room.
 */
struct buf *output_lock(struct output *output, size_t max, size_t *room_out);

/* Hand over what was appended: 0, or a negative errno without a thread. */
int output_unlock(struct output *output, bool want_room);

struct output_status output_status(struct output *output);

/* Have event run when everything is written; true when it is already. */
bool output_watch_empty(struct output *output);

/*
 * End: the thread ends when everything is written. wait: until then; else a
 * thread that hangs in a write stays behind, and the memory with it.
 */
void output_end(struct output *output, bool wait);

#endif
