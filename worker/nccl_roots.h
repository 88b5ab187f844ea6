/*
 * Which ranks make NCCL's unique ids; pure.
 *
 * One id's root answers all ranks, which takes long above some hundred; NCCL
 * then takes several ids, each made by the first rank of a block of ranks.
 * Source: ncclCommInitRankScalable in NCCL's user guide.
 */
#ifndef FLAUNCH_WORKER_NCCL_ROOTS_H
#define FLAUNCH_WORKER_NCCL_ROOTS_H

/* Up to here one root serves all. */
#define NCCL_ONE_ROOT_MAX 256
/* Above, one for each of so many ranks. */
#define NCCL_RANKS_PER_ROOT 128

/* How many ids a communicator of world_size ranks gets. */
int nccl_roots_count(int world_size);

/* The rank that makes id i of n. */
int nccl_root_rank(int i, int n, int world_size);

/* The number of the id that rank makes, or -1. */
int nccl_root_index(int rank, int n, int world_size);

#endif
