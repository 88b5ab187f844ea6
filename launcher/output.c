#include "launcher/output.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

void output_init(struct output *output, int fd, void (*event)(void *arg),
                 void *arg)
{
    *output = (struct output){ .fd = fd, .event = event, .arg = arg };
    (void)pthread_mutex_init(&output->lock, NULL);
    (void)pthread_cond_init(&output->more, NULL);
}

/* One write, which may take its time: bytes written or a negative errno. */
static ssize_t write_some(int fd, const uint8_t *data, size_t len)
{
    struct pollfd ready = { .fd = fd, .events = POLLOUT };

    for (;;) {
        ssize_t n = write(fd, data, len);

        if (n >= 0) {
            return n;
        }
        if (errno == EAGAIN) {
            (void)poll(&ready, 1, -1);
        } else if (errno != EINTR) {
            return -errno;
        }
    }
}

/*
 * Note that n bytes more are written, or, with an error, lost. Later ones are
 * tried all the same: a disk may have room again.
 */
static void account(struct output *output, size_t n, int error)
{
    struct output_status *status = &output->status;
    bool tell;

    (void)pthread_mutex_lock(&output->lock);
    output->busy_len -= n;
    tell = output->want_room || (error != 0 && status->error == 0) ||
           (output->want_empty && output->busy_len + output->fill.len == 0);
    if (error == 0) {
        status->written += n;
    } else {
        status->lost += n;
        status->error = status->error != 0 ? status->error : error;
    }
    output->want_room = false;
    /* Within the lock, so that none comes after output_end. */
    if (tell && !output->ending) {
        output->event(output->arg);
    }
    (void)pthread_mutex_unlock(&output->lock);
}

/* Take over what is queued; false at the end. */
static bool take_queue(struct output *output)
{
    struct buf empty = output->busy;

    (void)pthread_mutex_lock(&output->lock);
    while (output->fill.len == 0 && !output->ending) {
        output->waiting = true;
        (void)pthread_cond_wait(&output->more, &output->lock);
    }
    output->waiting = false;
    empty.len = 0;
    output->busy = output->fill;
    output->busy_len = output->busy.len;
    output->fill = empty;
    (void)pthread_mutex_unlock(&output->lock);
    return output->busy.len > 0;
}

static void *write_all(void *arg)
{
    struct output *output = arg;

    while (take_queue(output)) {
        size_t done = 0;

        while (done < output->busy.len) {
            size_t left = output->busy.len - done;
            ssize_t n = write_some(output->fd, output->busy.data + done, left);
            size_t gone = n >= 0 ? (size_t)n : left;

            done += gone;
            account(output, gone, n < 0 ? (int)-n : 0);
        }
    }
    return NULL;
}

/* Signals are the loop's: the thread takes none. */
static int thread_start(struct output *output)
{
    sigset_t all;
    sigset_t old;
    int rc;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = -pthread_create(&output->thread, NULL, write_all, output);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    output->started = rc == 0;
    return rc;
}

/* Nobody will ever write what is queued. */
static void queue_lost(struct output *output, int error)
{
    (void)pthread_mutex_lock(&output->lock);
    output->status.lost += output->fill.len;
    output->status.error = error;
    output->fill.len = 0;
    (void)pthread_mutex_unlock(&output->lock);
}

struct buf *output_lock(struct output *output, size_t max, size_t *room_out)
{
    size_t used;

    (void)pthread_mutex_lock(&output->lock);
    used = output->fill.len + output->busy_len;
    *room_out = used < max ? max - used : 0;
    return &output->fill;
}

int output_unlock(struct output *output, bool want_room)
{
    bool wake = output->waiting && output->fill.len > 0;
    bool first = !output->started && output->fill.len > 0;
    int rc;

    if (wake) {
        output->waiting = false;
    }
    output->want_room = output->want_room || want_room;
    (void)pthread_mutex_unlock(&output->lock);
    if (wake) {
        (void)pthread_cond_signal(&output->more);
    }
    rc = first ? thread_start(output) : 0;
    if (rc < 0) {
        queue_lost(output, -rc);
    }
    return rc;
}

struct output_status output_status(struct output *output)
{
    struct output_status status;

    (void)pthread_mutex_lock(&output->lock);
    status = output->status;
    status.queued = output->fill.len + output->busy_len;
    (void)pthread_mutex_unlock(&output->lock);
    return status;
}

bool output_watch_empty(struct output *output)
{
    bool empty;

    (void)pthread_mutex_lock(&output->lock);
    empty = output->fill.len + output->busy_len == 0;
    output->want_empty = true;
    (void)pthread_mutex_unlock(&output->lock);
    return empty;
}

void output_end(struct output *output, bool wait)
{
    (void)pthread_mutex_lock(&output->lock);
    output->ending = true;
    (void)pthread_mutex_unlock(&output->lock);
    if (!output->started) {
        buf_destroy(&output->fill);
        return;
    }
    (void)pthread_cond_signal(&output->more);
    if (!wait) {
        (void)pthread_detach(output->thread);
        return;
    }
    (void)pthread_join(output->thread, NULL);
    buf_destroy(&output->fill);
    buf_destroy(&output->busy);
    (void)pthread_mutex_destroy(&output->lock);
    (void)pthread_cond_destroy(&output->more);
    output->started = false;
}
