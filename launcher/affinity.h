/*
 * --numa-binding: which CPUs each worker may use; pure.
 *
 * As torchrun's, which knows GPUs only: without any, the workers are spread
 * over the NUMA nodes in order.
 */
#ifndef FLAUNCH_LAUNCHER_AFFINITY_H
#define FLAUNCH_LAUNCHER_AFFINITY_H

#include "common/err.h"

#include <stddef.h>
#include <stdint.h>

enum affinity_mode {
    AFFINITY_NODE,         /* the NUMA node of the worker's GPU */
    AFFINITY_SOCKET,       /* every node of its socket */
    AFFINITY_EXCLUSIVE,    /* the node's cores, shared out to its GPUs */
    AFFINITY_CORE_COMPLEX, /* cores of the node that share a cache, in turn */
};

/* A CPU that we may use. core and cache are named by their lowest CPU. */
struct affinity_cpu {
    uint32_t cpu;
    uint32_t core;
    uint32_t cache; /* the largest that it has */
    uint32_t node;
    uint32_t socket;
};

struct affinity_machine {
    const struct affinity_cpu *cpus; /* by number, at least one */
    size_t n_cpus;
    const uint32_t *gpu_nodes; /* the node of each GPU */
    size_t n_gpus;
};

/* Of each worker in turn, as sched_setaffinity takes it. */
struct cpu_masks {
    uint8_t *masks;
    uint32_t bytes; /* of one; 0: none is bound */
};

/* "node", "core-complex": 0 or -EINVAL. */
int affinity_mode_parse(const char *text, enum affinity_mode *mode_out);

/*
 * worker_gpus  the number of each worker's GPU in gpu_nodes; NULL: none has one
 *
 * masks_out is freed with cpu_masks_destroy. Returns 0, -EINVAL where a worker
 * would have no CPU, or -ENOMEM, with a sentence.
 */
int affinity_choose(enum affinity_mode mode,
                    const struct affinity_machine *machine,
                    const uint32_t *worker_gpus, uint32_t n_workers,
                    struct cpu_masks *masks_out, struct err *err);

/* The CPUs of a worker as text: "0-3,8". */
void cpu_masks_print(const struct cpu_masks *masks, uint32_t worker,
                     char *text_out, size_t size);

void cpu_masks_destroy(struct cpu_masks *masks);

#endif
