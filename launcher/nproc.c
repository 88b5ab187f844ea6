#include "launcher/nproc.h"

#include "common/parse.h"

#include <errno.h>
#include <string.h>

int nproc_resolve(const char *text, unsigned n_cpus, unsigned n_gpus,
                  uint32_t *n_out, struct err *err)
{
    int64_t n;

    if (strcmp(text, "cpu") == 0) {
        n = n_cpus;
    } else if (strcmp(text, "gpu") == 0) {
        if (n_gpus == 0) {
            return err_set(err, -EINVAL,
                           "--nproc-per-node=gpu: no GPU is visible here "
                           "(/dev/nvidia*, CUDA_VISIBLE_DEVICES)");
        }
        n = n_gpus;
    } else if (strcmp(text, "auto") == 0) {
        n = n_gpus > 0 ? n_gpus : n_cpus;
    } else if (parse_int(text, 1, NPROC_MAX, &n) < 0) {
        return err_set(err, -EINVAL,
                       "--nproc-per-node=%s: give a number from 1 to %d, or "
                       "auto, cpu, gpu",
                       text, NPROC_MAX);
    }
    *n_out = (uint32_t)n;
    return 0;
}
