/*
 * The CUDA runtime, loaded at run time: a table of functions.
 *
 * One build runs with and without GPUs. The copy that the program has loaded
 * already wins. Where the real header is installed, worker/cuda_check.c has
 * the compiler compare these declarations with it.
 */
#ifndef FLAUNCH_WORKER_CUDA_API_H
#define FLAUNCH_WORKER_CUDA_API_H

#include "worker/flaunch.h"

/* cudaError_t; an enum there, of this size. */
typedef unsigned int cuda_error;

#define CUDA_OK 0U
#define CUDA_NO_DEVICE 100U

struct cuda_api {
    void *library;
    cuda_error (*get_device_count)(int *count);
    cuda_error (*set_device)(int device);
    cuda_error (*get_device)(int *device);
    cuda_error (*device_get_pci_bus_id)(char *text, int len, int device);
    cuda_error (*runtime_get_version)(int *version);
    cuda_error (*driver_get_version)(int *version);
    const char *(*get_error_string)(cuda_error error);
};

/* One row for each function: the member and the library's name for it. */
#define CUDA_API_ROWS(ROW)                                                     \
    ROW(get_device_count, cudaGetDeviceCount)                                  \
    ROW(set_device, cudaSetDevice)                                             \
    ROW(get_device, cudaGetDevice)                                             \
    ROW(device_get_pci_bus_id, cudaDeviceGetPCIBusId)                          \
    ROW(runtime_get_version, cudaRuntimeGetVersion)                            \
    ROW(driver_get_version, cudaDriverGetVersion)                              \
    ROW(get_error_string, cudaGetErrorString)

/*
 * Load libcudart: 0, or -ENOENT (FLAUNCH_CUDA) with a sentence that says what
 * to install.
 */
int cuda_api_load(struct cuda_api *api_out, struct flaunch_error *error);

/* How many GPUs are visible; without any, 0. An error names CUDA's own. */
int cuda_api_count(const struct cuda_api *api, int *n_out,
                   struct flaunch_error *error);

#endif
