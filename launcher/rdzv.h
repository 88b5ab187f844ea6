/*
 * This agent's part in the rendezvous: it hosts the job, or it has joined the
 * node that does. Either way it hears what the coordinator decides.
 *
 * Life: rdzv_init, rdzv_begin, rdzv_open, rdzv_stop; rdzv_destroy when the loop
 * has ended.
 */
#ifndef FLAUNCH_LAUNCHER_RDZV_H
#define FLAUNCH_LAUNCHER_RDZV_H

#include "launcher/rdzv_host.h"
#include "launcher/rdzv_join.h"

struct rdzv {
    struct rdzv_setup setup;
    uv_loop_t *loop;
    struct rdzv_host *host; /* one of the two, or both NULL before the */
    struct rdzv_join *join; /* address is looked at */
};

/*
 * setup->listeners are there where this node is known to host; they are the
 * rendezvous's from now on. Returns 0 or -ENOMEM.
 */
int rdzv_init(struct rdzv *rdzv, const struct rdzv_setup *setup);

/*
 * What can be decided without a loop is: on one node START comes inside this
 * call.
 */
void rdzv_begin(struct rdzv *rdzv);

/* Go on in loop: 0 or a negative errno, said on stderr. */
int rdzv_open(struct rdzv *rdzv, uv_loop_t *loop);

/* Say something to the coordinator; its answers come later. */
void rdzv_send(struct rdzv *rdzv, const struct agent_msg *msg);

/* Have the store log who waits for which keys. */
void rdzv_say_waiting(struct rdzv *rdzv);

/* The guard has killed our workers, since the lease was over. */
void rdzv_lease_over(struct rdzv *rdzv);

/* Begin to close all handles; nothing is told any more. */
void rdzv_stop(struct rdzv *rdzv);

void rdzv_destroy(struct rdzv *rdzv);

/*
 * The listening sockets of a node that hosts, as many as its clients need; a
 * port that is taken is told with its holder. 0 or a negative errno with a
 * sentence.
 */
int rdzv_listen(const struct config *config, struct net_listeners *out,
                struct err *err);

#endif
