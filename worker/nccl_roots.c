#include "worker/nccl_roots.h"

int nccl_roots_count(int world_size)
{
    return world_size <= NCCL_ONE_ROOT_MAX
               ? 1
               : (world_size - 1) / NCCL_RANKS_PER_ROOT + 1;
}

int nccl_root_rank(int i, int n, int world_size)
{
    int longer = world_size % n; /* so many blocks have one rank more */

    return i * (world_size / n) + (i < longer ? i : longer);
}

int nccl_root_index(int rank, int n, int world_size)
{
    int i;

    for (i = 0; i < n; i++) {
        if (nccl_root_rank(i, n, world_size) == rank) {
            return i;
        }
    }
    return -1;
}
