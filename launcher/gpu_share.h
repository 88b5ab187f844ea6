/*
 * --virtual-local-rank: one of the visible GPUs for each worker.
 */
#ifndef FLAUNCH_LAUNCHER_GPU_SHARE_H
#define FLAUNCH_LAUNCHER_GPU_SHARE_H

#include "common/err.h"

#include <stdint.h>

/*
 * What CUDA_VISIBLE_DEVICES is for each worker: its entry of visible, which is
 * the variable's value or NULL, else its local rank. gpus_out gets n_workers
 * strings, to be freed with gpu_share_destroy. Returns 0, -EINVAL where visible
 * has too few entries, or -ENOMEM, with a sentence.
 */
int gpu_share_make(const char *visible, uint32_t n_workers, char ***gpus_out,
                   struct err *err);

void gpu_share_destroy(char **gpus, uint32_t n_workers);

#endif
