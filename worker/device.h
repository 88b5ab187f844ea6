/*
 * Local rank to device; pure.
 */
#ifndef FLAUNCH_WORKER_DEVICE_H
#define FLAUNCH_WORKER_DEVICE_H

#include "worker/flaunch.h"

#include <stdbool.h>

#define DEVICE_CPU (-1)

struct device_request {
    int n_gpus; /* visible here */
    int wanted; /* an explicit device, or -1 */
    int local_rank;
    int local_world_size;
    bool no_set_device_rank; /* device 0 whatever the local rank */
    const char *visible;     /* CUDA_VISIBLE_DEVICES, or NULL */
    const char *binding;     /* what bound GPUs to tasks, or NULL: for people */
};

/*
 * An explicit device; else the only GPU; else GPU local_rank; never a modulo,
 * since NCCL refuses two ranks on one GPU. DEVICE_CPU where there is none.
 *
 * Returns 0, or -ENODEV with the numbers.
 */
int device_choose(const struct device_request *request, int *device_out,
                  struct flaunch_error *error);

/*
 * Whether CUDA_VISIBLE_DEVICES hides every GPU on purpose: empty, -1, or
 * Slurm's NoDevFiles.
 */
bool device_all_hidden(const char *visible);

#endif
