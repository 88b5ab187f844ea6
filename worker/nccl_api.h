/*
 * NCCL, loaded at run time: a table of functions. See worker/cuda_api.h.
 */
#ifndef FLAUNCH_WORKER_NCCL_API_H
#define FLAUNCH_WORKER_NCCL_API_H

#include "worker/flaunch.h"

/* ncclResult_t; an enum there, of this size. */
typedef unsigned int nccl_result;

#define NCCL_OK 0U
struct nccl_api {
    void *library;
    nccl_result (*get_version)(int *version);
    const char *(*get_error_string)(nccl_result result);
};

/* Functions whose types hold nothing but C's own. */
#define NCCL_API_ROWS(ROW)                                                     \
    ROW(get_version, ncclGetVersion)                                           \
    ROW(get_error_string, ncclGetErrorString)

/* Load libnccl.so.2: 0, or -ENOENT (FLAUNCH_NCCL) with a sentence. */
int nccl_api_load(struct nccl_api *api_out, struct flaunch_error *error);

#endif
