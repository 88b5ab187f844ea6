#include "launcher/nproc.h"

#include "common/parse.h"

#include <string.h>

int nproc_resolve(const struct options *options, unsigned n_cpus,
                  unsigned n_gpus, uint32_t *n_out, struct err *err)
{
    const char *text = options->values[OPT_NPROC_PER_NODE].text;
    int64_t n;

    if (strcmp(text, "cpu") == 0) {
        n = n_cpus;
    } else if (strcmp(text, "gpu") == 0) {
        if (n_gpus == 0) {
            return options_bad(options, OPT_NPROC_PER_NODE,
                               "no GPU is visible here (/dev/nvidia*, "
                               "CUDA_VISIBLE_DEVICES)",
                               err);
        }
        n = n_gpus;
    } else if (strcmp(text, "auto") == 0) {
        n = n_gpus > 0 ? n_gpus : n_cpus;
    } else if (parse_python_int(text, 1, NPROC_MAX, &n) < 0) {
        return options_bad(options, OPT_NPROC_PER_NODE,
                           "give a number from 1 to 65536, or auto, cpu, gpu",
                           err);
    }
    *n_out = (uint32_t)n;
    return 0;
}
