/*
 * --numa-binding: topology, GPUs and choice put together.
 */
#ifndef FLAUNCH_LAUNCHER_BINDING_H
#define FLAUNCH_LAUNCHER_BINDING_H

#include "launcher/affinity.h"

/*
 * The CPUs of each worker on this machine; see affinity_choose. visible is the
 * value of CUDA_VISIBLE_DEVICES, or NULL. Returns 0 or a negative errno with a
 * sentence.
 */
int binding_make(enum affinity_mode mode, const char *visible,
                 uint32_t n_workers, struct cpu_masks *masks_out,
                 struct err *err);

#endif
