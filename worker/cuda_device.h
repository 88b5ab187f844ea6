/*
 * The GPU of this rank: find it, make it the current one, and tell what it is.
 *
 * Driver calls may hang on a broken machine, so all of them run on a helper
 * thread, and the calling thread keeps the deadline.
 */
#ifndef FLAUNCH_WORKER_CUDA_DEVICE_H
#define FLAUNCH_WORKER_CUDA_DEVICE_H

#include "worker/cuda_api.h"
#include "worker/device.h"

#include <stdint.h>

struct cuda_device {
    struct cuda_api api;
    int device; /* DEVICE_CPU: there is none */
    int n_visible;
    char pci[32];  /* PCI address */
    char uuid[48]; /* "" where the driver does not tell */
    int runtime_version;
    int driver_version;
    char why_none[256]; /* where there is none */
};

/*
 * Load the CUDA runtime, choose, and open the device on the calling thread.
 *
 * request  n_gpus is found out
 *
 * Returns 0, also where there is no GPU to be had (device is DEVICE_CPU then
 * and why_none says why); a negative errno where there should be one and it
 * cannot be used, or no choice fits. -ETIMEDOUT: the driver hangs.
 */
int cuda_device_open(struct cuda_device *device_out,
                     const struct device_request *request, uint64_t deadline_ms,
                     struct flaunch_error *error);

#endif
