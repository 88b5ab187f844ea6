/*
 * Where the NVIDIA GPUs that the workers will see are, from the driver's and
 * the kernel's files, without CUDA.
 */
#ifndef FLAUNCH_LAUNCHER_GPU_PLACE_H
#define FLAUNCH_LAUNCHER_GPU_PLACE_H

#include "common/err.h"

#include <stddef.h>
#include <stdint.h>

#define GPU_PLACES_MAX 64

struct gpu_places {
    uint32_t nodes[GPU_PLACES_MAX]; /* NUMA node of each GPU, in PCI order */
    uint32_t n;
    uint32_t visible[GPU_PLACES_MAX]; /* by local rank: which of them */
    uint32_t n_visible;
};

/*
 * root     "" or a directory that stands for /, for tests
 * visible  the value of CUDA_VISIBLE_DEVICES, or NULL
 *
 * Returns 0, also where there is no GPU, or -EINVAL with a sentence where an
 * entry of visible is none that we can place.
 */
int gpu_places_read(const char *root, const char *visible,
                    struct gpu_places *places_out, struct err *err);

#endif
