/*
 * The nccl backend: all ranks of a job in one communicator, made under one
 * deadline, with the store to exchange the ids and to tell of failures.
 */
#ifndef FLAUNCH_WORKER_NCCL_GROUP_H
#define FLAUNCH_WORKER_NCCL_GROUP_H

#include "worker/cuda_device.h"
#include "worker/nccl_comm.h"
#include "worker/store_client.h"

struct nccl_split {
    struct ncclComm *comm;
};

struct nccl_group {
    struct nccl_context context;
    int version;
    char path[256]; /* of the library */
    struct ncclComm *comm;
    struct nccl_split *splits; /* in the order they were made */
    size_t n_splits;
    bool broken;
};

struct nccl_group_request {
    int rank;
    int world_size;
    const char *host;            /* of this rank, for people */
    struct store_client *client; /* NULL for a job of one */
    const char *prefix;          /* of keys that no other group has */
    uint64_t deadline_ms;
};

/* Load NCCL for a device that is open: 0, or -ENOENT with a sentence. */
int nccl_group_load(struct nccl_group *group, const struct cuda_device *device,
                    struct flaunch_error *error);

/*
 * Make the communicator. 0 or a negative errno with a sentence, the same on
 * every rank that can know: -ETIMEDOUT, -EIO, -EDEADLK where NCCL could not
 * even be aborted.
 */
int nccl_group_open(struct nccl_group *group,
                    const struct nccl_group_request *request,
                    struct flaunch_error *error);

/* A part of it; see flaunch_comm_split. */
int nccl_group_split(struct nccl_group *group, int color, int key,
                     uint64_t deadline_ms, void **comm_out,
                     struct flaunch_error *error);

/* End all communicators; allowed where nothing was opened. */
void nccl_group_close(struct nccl_group *group);

#endif
