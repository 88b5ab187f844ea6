/*
 * A joining node's side of the rendezvous: it finds the host node, with
 * patience, keeps the connection alive, and holds the lease for its workers.
 */
#ifndef FLAUNCH_LAUNCHER_RDZV_JOIN_H
#define FLAUNCH_LAUNCHER_RDZV_JOIN_H

#include "launcher/rdzv_host.h"

/* Heartbeats are sent in this interval. */
#define RDZV_BEAT_MS 1000
/* To one address, until flaunch answers there. */
#define RDZV_CONNECT_MS 3000
/* From then to WELCOME. */
#define RDZV_HELLO_MS 5000
/* Between two tries, at most. */
#define RDZV_PAUSE_MAX_MS 2000
/* When the host node was lost in a round: it may be the connection only. */
#define RDZV_REJOIN_MS 3000

struct rdzv_join;

/*
 * ours  runs in the loop when the address turns out to be this machine's: true
 *       where this node hosts now, and the join is to be stopped; NULL: it is
 *       not asked
 *
 * Returns 0 or -ENOMEM; setup is copied.
 */
int rdzv_join_create(const struct rdzv_setup *setup, bool (*ours)(void *arg),
                     void *ours_arg, struct rdzv_join **join_out);

void rdzv_join_open(struct rdzv_join *join, uv_loop_t *loop);

void rdzv_join_send(struct rdzv_join *join, const struct agent_msg *msg);

/* The guard has killed our workers, since the lease was over. */
void rdzv_join_lease_over(struct rdzv_join *join);

void rdzv_join_stop(struct rdzv_join *join);

/* After the loop has ended; join may be NULL. */
void rdzv_join_destroy(struct rdzv_join *join);

#endif
