/*
 * Which nodes the job has, where they meet, and who hosts: from options and
 * what the scheduler says; pure.
 */
#ifndef FLAUNCH_LAUNCHER_NODES_H
#define FLAUNCH_LAUNCHER_NODES_H

#include "common/err.h"
#include "launcher/agent_proto.h"
#include "launcher/options.h"
#include "launcher/slurm.h"

/* Where nodes meet when no port is given: --master-addr, --rdzv-endpoint. */
#define NODES_PORT 29500
#define NODES_RDZV_PORT 29400

enum nodes_hosting {
    NODES_HOST_HERE,
    NODES_HOST_ELSEWHERE,
    NODES_HOST_BY_ADDRESS, /* here, if the address is one of this machine's */
};

struct nodes {
    uint32_t min;
    uint32_t max;       /* 1: one node, and most of the rest does not count */
    uint32_t node_rank; /* AGENT_NO_RANK: none */
    enum nodes_hosting hosting;
    char host[AGENT_HOST_MAX];    /* where nodes meet, "" not known; no [] */
    char address[AGENT_HOST_MAX]; /* MASTER_ADDR as given; "": where the host
                                   * node is reached */
    uint16_t port;                /* 0: a free one */
    const char *backend;          /* as torchrun would name it */
    const char *bind;             /* "": every address */
    const char *given_run_id;
    char made_run_id[64];      /* "": given_run_id counts */
    char name[AGENT_HOST_MAX]; /* of this node */
    uint64_t join_ms;
    uint64_t last_call_ms;
    uint64_t lease_ms; /* --heartbeat-timeout */
    uint32_t n_gpus;   /* of this node, says Slurm; 0: not known */
    const char *from;  /* "Slurm" where it gave something, else NULL */
    char unknown[128]; /* keys of --rdzv-conf that mean nothing here; "" */
};

/*
 * view        for what schedulers say
 * hostname    of this machine
 * new_run_id  a name that no other job has, used where torchrun makes one up
 *
 * Returns 0 or -EINVAL with a sentence.
 */
int nodes_resolve(const struct options *options,
                  const struct environ_view *view, const char *hostname,
                  const char *new_run_id, struct nodes *nodes_out,
                  struct err *err);

/* Whether nodes meet at an address that each machine has of its own. */
bool nodes_meet_on_loopback(const struct nodes *nodes);

/* The name of the job. */
const char *nodes_run_id(const struct nodes *nodes);

#endif
