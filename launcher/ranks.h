/*
 * Nodes and counts to rank, local rank, world size; arithmetic only.
 */
#ifndef FLAUNCH_LAUNCHER_RANKS_H
#define FLAUNCH_LAUNCHER_RANKS_H

#include <stdint.h>

/* Where a worker stands. Ranks are contiguous per node. */
struct place {
    uint32_t rank;
    uint32_t world_size;
    uint32_t local_rank;
    uint32_t local_world_size;
    uint32_t group_rank; /* the node's */
    uint32_t group_world_size;
};

/*
 * The place of a worker.
 *
 * n_per_node  workers of each of the n_nodes nodes
 */
struct place ranks_place(const uint32_t *n_per_node, uint32_t n_nodes,
                         uint32_t node_rank, uint32_t local_rank);

#endif
