/*
 * Processes per node from a number, "cpu", "gpu" or "auto"; pure.
 */
#ifndef FLAUNCH_LAUNCHER_NPROC_H
#define FLAUNCH_LAUNCHER_NPROC_H

#include "common/err.h"

#include <stdint.h>

#define NPROC_MAX 65536

/*
 * n_cpus and n_gpus are what this machine has. auto: one per GPU, else one
 * per CPU. Returns 0, or -EINVAL with a sentence that names the option.
 */
int nproc_resolve(const char *text, unsigned n_cpus, unsigned n_gpus,
                  uint32_t *n_out, struct err *err);

#endif
