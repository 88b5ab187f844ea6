#include "common/store_host.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct store_host {
    uv_loop_t loop;
    uv_async_t stop_async;
    uv_async_t say_async;
    struct store_server server;
    pthread_t thread;
};

static void server_closed(struct store_server *server, void *arg)
{
    (void)server;
    (void)arg;
}

static void asyncs_close(struct store_host *host)
{
    uv_close((uv_handle_t *)&host->stop_async, NULL);
    uv_close((uv_handle_t *)&host->say_async, NULL);
}

static void stop_asked(uv_async_t *async)
{
    struct store_host *host = async->data;

    store_server_stop(&host->server);
    asyncs_close(host);
}

static void say_asked(uv_async_t *async)
{
    struct store_host *host = async->data;

    store_server_say_waiting(&host->server);
}

static int asyncs_open(struct store_host *host)
{
    int rc = uv_async_init(&host->loop, &host->stop_async, stop_asked);

    if (rc < 0) {
        return rc;
    }
    rc = uv_async_init(&host->loop, &host->say_async, say_asked);
    if (rc < 0) {
        uv_close((uv_handle_t *)&host->stop_async, NULL);
        return rc;
    }
    host->stop_async.data = host;
    host->say_async.data = host;
    return 0;
}

static void *host_run(void *arg)
{
    struct store_host *host = arg;

    (void)uv_run(&host->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* A thread that no signal reaches: they are the main thread's. */
static int thread_create(struct store_host *host)
{
    sigset_t all;
    sigset_t old;
    int rc;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&host->thread, NULL, host_run, host);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -rc;
}

/* Close whatever the loop holds, on this thread. */
static void host_destroy(struct store_host *host)
{
    int rc;

    (void)uv_run(&host->loop, UV_RUN_DEFAULT);
    rc = uv_loop_close(&host->loop);
    assert(rc == 0);
    (void)rc;
    free(host);
}

/* The sockets are closed in any case where this fails. */
static int host_prepare(struct store_host *host,
                        const struct store_setup *setup, struct err *err)
{
    struct net_listeners listeners = setup->listeners;
    int rc = asyncs_open(host);

    if (rc < 0) {
        net_listeners_close(&listeners);
        return err_sys(err, rc, "cannot start the store");
    }
    rc = store_server_start(&host->server, &host->loop, setup, server_closed,
                            NULL, err);
    if (rc < 0) {
        asyncs_close(host);
        return rc;
    }
    rc = thread_create(host);
    if (rc < 0) {
        stop_asked(&host->stop_async);
        return err_sys(err, rc, "cannot start a thread for the store");
    }
    return 0;
}

int store_host_start(const struct store_setup *setup,
                     struct store_host **host_out, struct err *err)
{
    struct net_listeners listeners = setup->listeners;
    struct store_host *host = calloc(1, sizeof(*host));
    int rc = host != NULL ? uv_loop_init(&host->loop) : -ENOMEM;

    if (rc < 0) {
        free(host);
        net_listeners_close(&listeners);
        return err_sys(err, rc, "cannot start the store");
    }
    rc = host_prepare(host, setup, err);
    if (rc < 0) {
        host_destroy(host);
        return rc;
    }
    *host_out = host;
    return 0;
}

void store_host_say_waiting(struct store_host *host)
{
    if (host != NULL) {
        (void)uv_async_send(&host->say_async);
    }
}

void store_host_stop(struct store_host *host)
{
    if (host == NULL) {
        return;
    }
    (void)uv_async_send(&host->stop_async);
    (void)pthread_join(host->thread, NULL);
    host_destroy(host);
}
