/*
 * The health check: a plain HTTP answer from the agent's loop, for whoever
 * looks whether it still turns; on libuv.
 *
 * GET and HEAD of any path get 200 and the agent's state. A loop that hangs
 * answers nothing, which is what a probe looks for.
 *
 * Life: health_start, health_stop; the handles close with the loop.
 */
#ifndef FLAUNCH_LAUNCHER_HEALTH_H
#define FLAUNCH_LAUNCHER_HEALTH_H

#include "common/err.h"

#include <stdbool.h>
#include <uv.h>

#define HEALTH_CLIENTS_MAX 16 /* at once; more wait */
#define HEALTH_REQUEST_MAX 4096
#define HEALTH_TIMEOUT_MS 10000 /* from a client's first byte to its last */

struct health;

struct health_client {
    struct health *health;
    bool used;
    uv_tcp_t tcp;
    uv_timer_t timer;
    unsigned n_open; /* handles of it */
    uv_write_t write;
    char request[HEALTH_REQUEST_MAX];
    size_t len;
    char answer[256];
};

struct health {
    uv_tcp_t listener;
    bool started;
    unsigned n_waiting; /* connections that find no place */
    const char *(*state)(void *arg);
    void *arg;
    struct health_client clients[HEALTH_CLIENTS_MAX];
};

/*
 * Listen at where: "PORT", which is at 127.0.0.1, or "ADDRESS:PORT". state(arg)
 * is a word for the answer. 0 or a negative errno with a sentence; then health
 * is as before.
 */
int health_start(struct health *health, uv_loop_t *loop, const char *where,
                 const char *(*state)(void *arg), void *arg, struct err *err);

/* May be called without a start. */
void health_stop(struct health *health);

#endif
