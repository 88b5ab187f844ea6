/*
 * The host node's side of the rendezvous: the coordinator, the connections of
 * the other agents, and the store.
 */
#ifndef FLAUNCH_LAUNCHER_RDZV_HOST_H
#define FLAUNCH_LAUNCHER_RDZV_HOST_H

#include "common/net.h"
#include "launcher/agent_proto.h"
#include "launcher/config.h"

#include <uv.h>

/* What the rendezvous tells this node's agent. */
struct rdzv_events {
    /* What the coordinator says: STATUS, START, STOP, FIRST_DONE, END. */
    void (*message)(const struct agent_msg *msg, void *arg);
    /* Workers may run until then (CLOCK_BOOTTIME). */
    void (*lease)(uint64_t until_ns, void *arg);
    /*
     * The host node is lost; why is a sentence. Workers are to be killed; say
     * ENDED when they are. START or END come after that.
     */
    void (*lost)(const char *why, void *arg);
    /* flaunch itself cannot go on; why is a sentence. */
    void (*failed)(const char *why, void *arg);
};

struct rdzv_setup {
    const struct config *config;
    struct net_listeners listeners; /* none where another node hosts */
    const struct rdzv_events *events;
    void *arg;
};

struct rdzv_host;

/* 0 or -ENOMEM; setup is copied. */
int rdzv_host_create(const struct rdzv_setup *setup,
                     struct rdzv_host **host_out);

/* This node joins; START may come inside this call. */
void rdzv_host_begin(struct rdzv_host *host);

/* Serve: 0 or a negative errno, said on stderr. */
int rdzv_host_open(struct rdzv_host *host, uv_loop_t *loop);

/* This node's agent says something. */
void rdzv_host_send(struct rdzv_host *host, const struct agent_msg *msg);

void rdzv_host_say_waiting(struct rdzv_host *host);

void rdzv_host_stop(struct rdzv_host *host);

/* After the loop has ended; host may be NULL. */
void rdzv_host_destroy(struct rdzv_host *host);

/* HELLO of this node, as it was started. */
struct agent_msg rdzv_hello(const struct config *config, uint64_t incarnation);

#endif
