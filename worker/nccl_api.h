/*
 * NCCL, loaded at run time: a table of functions. See worker/cuda_api.h.
 * Version 2.18 or later; what came after 2.18 is optional.
 */
#ifndef FLAUNCH_WORKER_NCCL_API_H
#define FLAUNCH_WORKER_NCCL_API_H

#include "worker/flaunch.h"

struct CUstream_st;
struct ncclComm; /* ncclComm_t points to it */

/* ncclResult_t; an enum there, of this size. */
typedef unsigned int nccl_result;

#define NCCL_OK 0U
#define NCCL_INTERNAL_ERROR 3U
#define NCCL_INVALID_USAGE 5U
#define NCCL_IN_PROGRESS 7U

#define NCCL_INT32 2U
#define NCCL_SUM 0U
#define NCCL_SPLIT_NONE (-1) /* NCCL_SPLIT_NOCOLOR */
#define NCCL_VERSION_MIN 21800
#define NCCL_ID_LEN 128

struct nccl_id {
    char internal[NCCL_ID_LEN];
};

/*
 * ncclConfig_t as far as 2.18 has it. Later versions append, look at no more
 * than size, and give what is newer than version its default.
 */
struct nccl_config {
    size_t size;
    unsigned int magic;
    unsigned int version;
    int blocking;
    int cga_cluster_size;
    int min_ctas;
    int max_ctas;
    const char *net_name;
    int split_share;
};

/* A config that asks for nothing but calls that do not block. */
struct nccl_config nccl_config_non_blocking(void);

struct nccl_api {
    void *library;
    nccl_result (*get_version)(int *version);
    const char *(*get_error_string)(nccl_result result);
    nccl_result (*comm_get_async_error)(struct ncclComm *comm,
                                        nccl_result *result);
    nccl_result (*comm_abort)(struct ncclComm *comm);
    nccl_result (*comm_finalize)(struct ncclComm *comm);
    nccl_result (*comm_destroy)(struct ncclComm *comm);
    nccl_result (*all_reduce)(const void *in, void *out, size_t count,
                              unsigned int type, unsigned int op,
                              struct ncclComm *comm,
                              struct CUstream_st *stream);
    /* With types that the headers of versions name differently. */
    nccl_result (*get_unique_id)(struct nccl_id *id);
    nccl_result (*comm_init_rank_config)(struct ncclComm **comm, int n_ranks,
                                         struct nccl_id id, int rank,
                                         struct nccl_config *config);
    /* Optional: NULL where the library is older. */
    const char *(*get_last_error)(struct ncclComm *comm);
    nccl_result (*comm_split)(struct ncclComm *comm, int color, int key,
                              struct ncclComm **new_comm,
                              struct nccl_config *config);
    nccl_result (*comm_init_rank_scalable)(struct ncclComm **comm, int n_ranks,
                                           int rank, int n_ids,
                                           struct nccl_id *ids,
                                           struct nccl_config *config);
};

/* Functions whose types nccl_check.c compares with the real header. */
#define NCCL_API_ROWS(ROW)                                                     \
    ROW(get_version, ncclGetVersion)                                           \
    ROW(get_error_string, ncclGetErrorString)                                  \
    ROW(comm_get_async_error, ncclCommGetAsyncError)                           \
    ROW(comm_abort, ncclCommAbort)                                             \
    ROW(comm_finalize, ncclCommFinalize)                                       \
    ROW(comm_destroy, ncclCommDestroy)                                         \
    ROW(all_reduce, ncclAllReduce)

/* Load libnccl.so.2: 0, -ENOENT (FLAUNCH_NCCL) with a sentence, also where it
 * is too old. */
int nccl_api_load(struct nccl_api *api_out, struct flaunch_error *error);

#endif
