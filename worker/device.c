#include "worker/device.h"

#include "worker/fail.h"

#include <errno.h>

int device_choose(const struct device_request *request, int *device_out,
                  struct flaunch_error *error)
{
    int n = request->n_gpus;

    if (request->wanted >= n && request->wanted >= 0) {
        return fail_set(error, FLAUNCH_CUDA, -ENODEV,
                        "CUDA device %d was asked for, and %d %s visible",
                        request->wanted, n, n == 1 ? "is" : "are");
    }
    if (request->wanted >= 0) {
        *device_out = request->wanted;
    } else if (n == 0) {
        *device_out = DEVICE_CPU;
    } else if (n == 1 || request->no_set_device_rank) {
        *device_out = 0;
    } else if (request->local_rank < n) {
        *device_out = request->local_rank;
    } else {
        return fail_set(error, FLAUNCH_CUDA, -ENODEV,
                        "local rank %d has no GPU: %d are visible; start %d "
                        "workers on this node, or make more visible "
                        "(CUDA_VISIBLE_DEVICES)",
                        request->local_rank, n, n);
    }
    return 0;
}
