#include "common/resolve.h"

#include "common/clock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Shared by caller and thread; whoever leaves last frees it. */
struct lookup {
    pthread_mutex_t mutex;
    pthread_cond_t done_cond;
    bool done;
    bool abandoned;
    int rc; /* getaddrinfo's */
    struct addrinfo *list;
    char *host;
    char port[8];
};

static int address_look_up(const char *host, const char *port, int flags,
                           struct addrinfo **list_out)
{
    struct addrinfo hints = { .ai_flags = flags | AI_NUMERICSERV,
                              .ai_family = AF_UNSPEC,
                              .ai_socktype = SOCK_STREAM };

    return getaddrinfo(host, port, &hints, list_out);
}

static void lookup_destroy(struct lookup *lookup)
{
    if (lookup->list != NULL) {
        freeaddrinfo(lookup->list);
    }
    (void)pthread_mutex_destroy(&lookup->mutex);
    (void)pthread_cond_destroy(&lookup->done_cond);
    free(lookup->host);
    free(lookup);
}

static void *lookup_run(void *arg)
{
    struct lookup *lookup = arg;
    struct addrinfo *list = NULL;
    bool abandoned;
    int rc = address_look_up(lookup->host, lookup->port, 0, &list);

    (void)pthread_mutex_lock(&lookup->mutex);
    lookup->rc = rc;
    lookup->list = rc == 0 ? list : NULL;
    lookup->done = true;
    abandoned = lookup->abandoned;
    (void)pthread_cond_signal(&lookup->done_cond);
    (void)pthread_mutex_unlock(&lookup->mutex);
    if (abandoned) {
        lookup_destroy(lookup);
    }
    return NULL;
}

static struct lookup *lookup_create(const char *host, const char *port)
{
    struct lookup *lookup = calloc(1, sizeof(*lookup));
    pthread_condattr_t attributes;

    if (lookup == NULL) {
        return NULL;
    }
    (void)pthread_mutex_init(&lookup->mutex, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&lookup->done_cond, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)snprintf(lookup->port, sizeof(lookup->port), "%s", port);
    lookup->host = strdup(host);
    if (lookup->host == NULL) {
        lookup_destroy(lookup);
        return NULL;
    }
    return lookup;
}

/* A detached thread that no signal reaches. */
static int lookup_start(struct lookup *lookup)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all;
    sigset_t old;
    int rc;

    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&thread, &attributes, lookup_run, lookup);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    (void)pthread_attr_destroy(&attributes);
    return -rc;
}

static void wait_until(struct lookup *lookup, uint64_t deadline_ms)
{
    struct timespec until = { .tv_sec = (time_t)(deadline_ms / 1000),
                              .tv_nsec = (long)(deadline_ms % 1000) * 1000000 };

    while (!lookup->done) {
        if (deadline_ms == CLOCK_NEVER) {
            (void)pthread_cond_wait(&lookup->done_cond, &lookup->mutex);
        } else if (pthread_cond_timedwait(&lookup->done_cond, &lookup->mutex,
                                          &until) == ETIMEDOUT) {
            return;
        }
    }
}

static int lookup_finish(struct lookup *lookup, const char *host,
                         uint64_t deadline_ms, struct addrinfo **list_out,
                         struct err *err)
{
    bool done;
    int rc = 0;

    (void)pthread_mutex_lock(&lookup->mutex);
    wait_until(lookup, deadline_ms);
    done = lookup->done;
    lookup->abandoned = !done;
    (void)pthread_mutex_unlock(&lookup->mutex);
    if (!done) {
        /* The thread frees lookup when the look-up returns at last. */
        return err_set(err, -ETIMEDOUT, "looking up %s takes too long", host);
    }
    if (lookup->rc != 0) {
        rc = err_set(err, -EHOSTUNREACH, "cannot look up %s: %s", host,
                     gai_strerror(lookup->rc));
    } else {
        *list_out = lookup->list;
        lookup->list = NULL;
    }
    lookup_destroy(lookup);
    return rc;
}

int resolve_host(const char *host, uint16_t port, uint64_t deadline_ms,
                 struct addrinfo **list_out, struct err *err)
{
    struct lookup *lookup;
    char text[8];
    int rc;

    (void)snprintf(text, sizeof(text), "%u", port);
    if (address_look_up(host, text, AI_NUMERICHOST, list_out) == 0) {
        return 0;
    }
    lookup = lookup_create(host, text);
    if (lookup == NULL) {
        return err_sys(err, -ENOMEM, "cannot look up %s", host);
    }
    rc = lookup_start(lookup);
    if (rc < 0) {
        lookup_destroy(lookup);
        return err_sys(err, rc, "cannot look up %s", host);
    }
    return lookup_finish(lookup, host, deadline_ms, list_out, err);
}
