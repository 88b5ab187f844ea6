/*
 * A node's place in a round, and a worker's on it, to rank, local_rank,
 * world_size; arithmetic only.
 */
#ifndef FLAUNCH_LAUNCHER_RANKS_H
#define FLAUNCH_LAUNCHER_RANKS_H

#include <stdint.h>

/* Where a node stands. Ranks are contiguous per node. */
struct node_place {
    uint32_t group_rank; /* the node's */
    uint32_t n_nodes;
    uint32_t n_workers; /* on this node */
    uint32_t base_rank; /* of its first worker */
    uint32_t world_size;
    uint32_t role_base_rank; /* among workers of the same role */
    uint32_t role_world_size;
};

/* Where a worker stands. */
struct place {
    uint32_t rank;
    uint32_t world_size;
    uint32_t local_rank;
    uint32_t local_world_size;
    uint32_t group_rank;
    uint32_t group_world_size;
    uint32_t role_rank;
    uint32_t role_world_size;
};

/* The only node of a job. */
struct node_place ranks_one_node(uint32_t n_workers);

struct place ranks_place(const struct node_place *node, uint32_t local_rank);

#endif
