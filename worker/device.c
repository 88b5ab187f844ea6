#include "worker/device.h"

#include "worker/fail.h"

#include <errno.h>
#include <string.h>

static const char *or_unset(const char *text)
{
    return text != NULL ? text : "(not set)";
}

int device_choose(const struct device_request *request, int *device_out,
                  struct flaunch_error *error)
{
    int n = request->n_gpus;

    if (request->wanted >= n && request->wanted >= 0) {
        return fail_set(error, FLAUNCH_CUDA, -ENODEV,
                        "CUDA device %d was asked for, and %d %s visible "
                        "(CUDA_VISIBLE_DEVICES=%.100s)",
                        request->wanted, n, n == 1 ? "is" : "are",
                        or_unset(request->visible));
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
                        "local rank %d of %d has no GPU: %d are visible "
                        "(CUDA_VISIBLE_DEVICES=%.100s%s%.60s); start %d "
                        "workers on this node, or make more visible",
                        request->local_rank, request->local_world_size, n,
                        or_unset(request->visible),
                        request->binding != NULL ? ", " : "",
                        request->binding != NULL ? request->binding : "", n);
    }
    return 0;
}

bool device_all_hidden(const char *visible)
{
    return visible != NULL &&
           (visible[0] == '\0' || strcmp(visible, "-1") == 0 ||
            strcmp(visible, "NoDevFiles") == 0);
}
