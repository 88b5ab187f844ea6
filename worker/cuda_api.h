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
#define CUDA_INITIALIZATION_ERROR 3U
#define CUDA_STUB_LIBRARY 34U
#define CUDA_INSUFFICIENT_DRIVER 35U
#define CUDA_DEVICES_UNAVAILABLE 46U
#define CUDA_NO_DEVICE 100U
#define CUDA_NOT_READY 600U
#define CUDA_SYSTEM_NOT_READY 802U
#define CUDA_SYSTEM_DRIVER_MISMATCH 803U

#define CUDA_MEMCPY_HOST_TO_DEVICE 1U
#define CUDA_MEMCPY_DEVICE_TO_HOST 2U
#define CUDA_STREAM_NON_BLOCKING 1U

/* cudaStream_t points to it. */
struct CUstream_st;

struct cuda_api {
    void *library;
    cuda_error (*get_device_count)(int *count);
    cuda_error (*set_device)(int device);
    cuda_error (*get_device)(int *device);
    cuda_error (*device_get_pci_bus_id)(char *text, int len, int device);
    cuda_error (*runtime_get_version)(int *version);
    cuda_error (*driver_get_version)(int *version);
    const char *(*get_error_string)(cuda_error error);
    cuda_error (*free)(void *pointer);
    cuda_error (*malloc)(void **pointer, size_t size);
    cuda_error (*memcpy)(void *to, const void *from, size_t size,
                         unsigned int kind);
    cuda_error (*stream_create_with_flags)(struct CUstream_st **stream,
                                           unsigned int flags);
    cuda_error (*stream_destroy)(struct CUstream_st *stream);
    cuda_error (*stream_query)(struct CUstream_st *stream);
};

/* One row for each function: the member and the library's name for it. */
#define CUDA_API_ROWS(ROW)                                                     \
    ROW(get_device_count, cudaGetDeviceCount)                                  \
    ROW(set_device, cudaSetDevice)                                             \
    ROW(get_device, cudaGetDevice)                                             \
    ROW(device_get_pci_bus_id, cudaDeviceGetPCIBusId)                          \
    ROW(runtime_get_version, cudaRuntimeGetVersion)                            \
    ROW(driver_get_version, cudaDriverGetVersion)                              \
    ROW(get_error_string, cudaGetErrorString)                                  \
    ROW(free, cudaFree)                                                        \
    ROW(malloc, cudaMalloc)                                                    \
    ROW(memcpy, cudaMemcpy)                                                    \
    ROW(stream_create_with_flags, cudaStreamCreateWithFlags)                   \
    ROW(stream_destroy, cudaStreamDestroy)                                     \
    ROW(stream_query, cudaStreamQuery)

/*
 * Load libcudart: 0, or -ENOENT (FLAUNCH_CUDA) with a sentence that says what
 * to install.
 */
int cuda_api_load(struct cuda_api *api_out, struct flaunch_error *error);

#endif
