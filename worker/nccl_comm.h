/*
 * One NCCL communicator: made, tried, split and ended with deadlines that NCCL
 * itself does not have.
 *
 * Every call that may hang runs on a helper thread: the parts of a non-blocking
 * initialisation that block all the same, and ncclCommAbort. After a failure
 * that thread ends, so that no state NCCL may have left in it is met again.
 */
#ifndef FLAUNCH_WORKER_NCCL_COMM_H
#define FLAUNCH_WORKER_NCCL_COMM_H

#include "worker/cuda_api.h"
#include "worker/nccl_api.h"

#include <stdbool.h>
#include <stdint.h>

/* How far an initialisation has come. */
enum nccl_stage {
    NCCL_STAGE_INIT,    /* in ncclCommInitRankConfig and after */
    NCCL_STAGE_WARM_UP, /* the first all-reduce, and after */
};

struct nccl_context {
    struct nccl_api nccl;
    struct cuda_api cuda;
    int device;
};

struct nccl_init;

/* Make ids with ncclGetUniqueId: 0 or a negative errno with a sentence. */
int nccl_comm_make_id(const struct nccl_context *context, uint64_t deadline_ms,
                      struct nccl_id *id_out, struct flaunch_error *error);

/*
 * Begin to initialise. ids are copied. End it with nccl_init_finish.
 */
int nccl_init_start(const struct nccl_context *context, int rank,
                    int world_size, const struct nccl_id *ids, int n_ids,
                    struct nccl_init **init_out, struct flaunch_error *error);

/* How far it has come. */
enum nccl_stage nccl_init_stage(const struct nccl_init *init);

/* Wait until it has ended, well or not: 0, or -ETIMEDOUT. */
int nccl_init_wait(struct nccl_init *init, uint64_t deadline_ms);

/* Why it failed: true with the sentence, where it has ended badly. */
bool nccl_init_failed(const struct nccl_init *init,
                      struct flaunch_error *error);

/*
 * Take the communicator of one that has ended well, or give up one that has
 * not: it is aborted, for which abort_ms are given.
 *
 * comm_out  NULL where it is given up
 *
 * Returns 0, or -EDEADLK where NCCL does not come back from its abort: the
 * process should then end with _exit.
 */
int nccl_init_finish(struct nccl_init *init, bool take, uint64_t abort_ms,
                     struct ncclComm **comm_out);

/* Split; as ncclCommSplit. color -1: comm_out gets NULL. Errors: -ENOTSUP with
 * an NCCL before 2.18, -EIO, -ETIMEDOUT. */
int nccl_comm_split(const struct nccl_context *context, struct ncclComm *comm,
                    int color, int key, uint64_t deadline_ms,
                    struct ncclComm **comm_out, struct flaunch_error *error);

/* Wait until the last call on comm is no longer in progress. */
int nccl_comm_wait(const struct nccl_context *context, struct ncclComm *comm,
                   uint64_t deadline_ms, struct flaunch_error *error);

/*
 * End a communicator: finalised and destroyed where all is well and the others
 * do the same in time, else aborted. Takes no longer than twice timeout_ms.
 */
void nccl_comm_close(const struct nccl_context *context, struct ncclComm *comm,
                     bool broken, uint64_t timeout_ms);

#endif
