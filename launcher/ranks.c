#include "launcher/ranks.h"

struct place ranks_place(const uint32_t *n_per_node, uint32_t n_nodes,
                         uint32_t node_rank, uint32_t local_rank)
{
    struct place place = { .rank = local_rank,
                           .local_rank = local_rank,
                           .local_world_size = n_per_node[node_rank],
                           .group_rank = node_rank,
                           .group_world_size = n_nodes };
    uint32_t i;

    for (i = 0; i < n_nodes; i++) {
        place.world_size += n_per_node[i];
        if (i < node_rank) {
            place.rank += n_per_node[i];
        }
    }
    return place;
}
