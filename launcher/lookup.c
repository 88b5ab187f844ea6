#include "launcher/lookup.h"

#include "common/clock.h"
#include "common/helper.h"
#include "common/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The thread writes its byte just before it ends. */
#define END_MS 1000

struct lookup {
    uv_poll_t poll;
    int fd; /* tells that the thread is done */
    struct helper *helper;
    struct lookup_job *job;
    lookup_done_fn *done;
    void *arg;
};

/* What the thread works with; freed by whoever leaves last. */
struct lookup_job {
    char *host;
    uint16_t port;
    int fd; /* the write end */
    struct addrinfo *list;
    struct err err;
};

static void job_run(void *arg)
{
    struct lookup_job *job = arg;

    if (resolve_blocking(job->host, job->port, &job->list, &job->err) < 0) {
        job->list = NULL;
    }
    /* Nobody reads it where the look-up was stopped. */
    if (write(job->fd, "", 1) < 0) {
        return;
    }
}

static void job_destroy(void *arg)
{
    struct lookup_job *job = arg;

    if (job->list != NULL) {
        freeaddrinfo(job->list);
    }
    (void)close(job->fd);
    free(job->host);
    free(job);
}

static struct lookup_job *job_create(const char *host, uint16_t port, int fd)
{
    struct lookup_job *job = calloc(1, sizeof(*job));

    if (job == NULL) {
        return NULL;
    }
    job->host = strdup(host);
    if (job->host == NULL) {
        free(job);
        return NULL;
    }
    job->port = port;
    job->fd = fd;
    return job;
}

static void poll_closed(uv_handle_t *handle)
{
    struct lookup *lookup = handle->data;

    (void)close(lookup->fd);
    free(lookup);
}

void lookup_stop(struct lookup *lookup)
{
    if (lookup != NULL) {
        helper_release(lookup->helper);
        uv_close((uv_handle_t *)&lookup->poll, poll_closed);
    }
}

static void thread_done(uv_poll_t *poll, int status, int events)
{
    struct lookup *lookup = poll->data;
    struct addrinfo *list = NULL;
    struct err err = { 0 };

    (void)status;
    (void)events;
    if (helper_wait(lookup->helper, clock_deadline(END_MS)) == 0) {
        list = lookup->job->list;
        lookup->job->list = NULL;
        err = lookup->job->err;
    } else {
        (void)err_set(&err, -ETIMEDOUT, "the look-up does not end");
    }
    lookup_stop(lookup);
    lookup->done(list, &err, lookup->arg);
}

/* Start the thread: 0, or a negative errno, and then fd is closed. */
static int thread_start(struct lookup *lookup, const char *host, uint16_t port,
                        int fd)
{
    int rc;

    lookup->job = job_create(host, port, fd);
    if (lookup->job == NULL) {
        (void)close(fd);
        return -ENOMEM;
    }
    rc = helper_start(job_run, job_destroy, lookup->job, &lookup->helper);
    if (rc < 0) {
        job_destroy(lookup->job);
    }
    return rc;
}

/* 0, or a negative errno, and then nothing of it is left but lookup. */
static int lookup_open(struct lookup *lookup, uv_loop_t *loop, const char *host,
                       uint16_t port)
{
    int fds[2];
    int rc;

    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
        return -errno;
    }
    lookup->fd = fds[0];
    rc = uv_poll_init(loop, &lookup->poll, fds[0]);
    if (rc < 0) {
        (void)close(fds[0]);
        (void)close(fds[1]);
        return rc;
    }
    lookup->poll.data = lookup;
    return thread_start(lookup, host, port, fds[1]);
}

int lookup_start(uv_loop_t *loop, const char *host, uint16_t port,
                 lookup_done_fn *done, void *arg, struct lookup **lookup_out,
                 struct err *err)
{
    struct lookup *lookup = calloc(1, sizeof(*lookup));
    int rc;

    if (lookup == NULL) {
        return err_sys(err, -ENOMEM, "cannot look up %s", host);
    }
    lookup->done = done;
    lookup->arg = arg;
    rc = lookup_open(lookup, loop, host, port);
    if (rc == 0) {
        rc = uv_poll_start(&lookup->poll, UV_READABLE, thread_done);
        if (rc < 0) {
            helper_release(lookup->helper);
        }
    }
    if (rc < 0) {
        if (lookup->poll.data != NULL) {
            uv_close((uv_handle_t *)&lookup->poll, poll_closed);
        } else {
            free(lookup);
        }
        return err_sys(err, rc, "cannot look up %s", host);
    }
    *lookup_out = lookup;
    return 0;
}
