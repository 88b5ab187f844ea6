/*
 * --nproc-per-node: a number, "cpu", "gpu" or "auto"; pure.
 */
#ifndef FLAUNCH_LAUNCHER_NPROC_H
#define FLAUNCH_LAUNCHER_NPROC_H

#include "launcher/options.h"

#include <stdint.h>

#define NPROC_MAX 65536

/*
 * n_cpus and n_gpus are what this machine has. auto: one per GPU, else one
 * per CPU. Returns 0, or -EINVAL with a sentence.
 */
int nproc_resolve(const struct options *options, unsigned n_cpus,
                  unsigned n_gpus, uint32_t *n_out, struct err *err);

#endif
