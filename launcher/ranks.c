#include "launcher/ranks.h"

struct node_place ranks_one_node(uint32_t n_workers)
{
    return (struct node_place){ .n_nodes = 1,
                                .n_workers = n_workers,
                                .world_size = n_workers,
                                .role_world_size = n_workers };
}

struct place ranks_place(const struct node_place *node, uint32_t local_rank)
{
    return (struct place){ .rank = node->base_rank + local_rank,
                           .world_size = node->world_size,
                           .local_rank = local_rank,
                           .local_world_size = node->n_workers,
                           .group_rank = node->group_rank,
                           .group_world_size = node->n_nodes,
                           .role_rank = node->role_base_rank + local_rank,
                           .role_world_size = node->role_world_size };
}
