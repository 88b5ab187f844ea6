#include "common/helper.h"

#include "common/clock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* Shared by caller and thread; whoever leaves last frees it. */
struct helper {
    pthread_mutex_t mutex;
    pthread_cond_t done_cond;
    bool done;
    bool released;
    helper_fn *run;
    helper_fn *destroy;
    void *arg;
};

static void helper_free(struct helper *helper)
{
    (void)pthread_mutex_destroy(&helper->mutex);
    (void)pthread_cond_destroy(&helper->done_cond);
    free(helper);
}

static void *helper_main(void *arg)
{
    struct helper *helper = arg;
    bool released;

    helper->run(helper->arg);
    (void)pthread_mutex_lock(&helper->mutex);
    helper->done = true;
    released = helper->released;
    (void)pthread_cond_signal(&helper->done_cond);
    (void)pthread_mutex_unlock(&helper->mutex);
    if (released) {
        helper->destroy(helper->arg);
        helper_free(helper);
    }
    return NULL;
}

static struct helper *helper_create(helper_fn *run, helper_fn *destroy,
                                    void *arg)
{
    struct helper *helper = calloc(1, sizeof(*helper));
    pthread_condattr_t attributes;

    if (helper == NULL) {
        return NULL;
    }
    (void)pthread_mutex_init(&helper->mutex, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&helper->done_cond, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    helper->run = run;
    helper->destroy = destroy;
    helper->arg = arg;
    return helper;
}

int helper_start(helper_fn *run, helper_fn *destroy, void *arg,
                 struct helper **helper_out)
{
    struct helper *helper = helper_create(run, destroy, arg);
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all;
    sigset_t old;
    int rc;

    if (helper == NULL) {
        return -ENOMEM;
    }
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&thread, &attributes, helper_main, helper);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (rc != 0) {
        helper_free(helper);
        return -rc;
    }
    *helper_out = helper;
    return 0;
}

int helper_wait(struct helper *helper, uint64_t deadline_ms)
{
    struct timespec until = { .tv_sec = (time_t)(deadline_ms / 1000),
                              .tv_nsec = (long)(deadline_ms % 1000) * 1000000 };
    int rc = 0;

    (void)pthread_mutex_lock(&helper->mutex);
    while (!helper->done && rc == 0) {
        rc = deadline_ms == CLOCK_NEVER
                 ? pthread_cond_wait(&helper->done_cond, &helper->mutex)
                 : pthread_cond_timedwait(&helper->done_cond, &helper->mutex,
                                          &until);
    }
    rc = helper->done ? 0 : -ETIMEDOUT;
    (void)pthread_mutex_unlock(&helper->mutex);
    return rc;
}

void helper_release(struct helper *helper)
{
    bool done;

    (void)pthread_mutex_lock(&helper->mutex);
    done = helper->done;
    helper->released = true;
    (void)pthread_mutex_unlock(&helper->mutex);
    if (done) {
        helper->destroy(helper->arg);
        helper_free(helper);
    }
}
