/*
 * How many NVIDIA GPUs the workers will see, without initialising CUDA: that
 * would take seconds and memory on every GPU.
 */
#ifndef FLAUNCH_LAUNCHER_GPU_COUNT_H
#define FLAUNCH_LAUNCHER_GPU_COUNT_H

/*
 * Count device nodes /dev/nvidia0, nvidia1, ... and, where visible (the value
 * of CUDA_VISIBLE_DEVICES, or NULL) is set, the entries of that list as CUDA
 * does: up to the first that is invalid. GPU and MIG identifiers count as
 * they are.
 *
 * root  "" or a directory that stands for /, for tests
 */
unsigned gpu_count(const char *root, const char *visible);

#endif
