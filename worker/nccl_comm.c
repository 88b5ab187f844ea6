#include "worker/nccl_comm.h"

#include "common/clock.h"
#include "common/helper.h"
#include "worker/fail.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pauses between looks at a call in progress. */
#define POLL_FIRST_MS 1
#define POLL_MAX_MS 10

/* Growing pauses between polls. */
static void pause_a_little(uint64_t *pause_ms)
{
    clock_sleep_ms(*pause_ms);
    *pause_ms = *pause_ms * 2 < POLL_MAX_MS ? *pause_ms * 2 : POLL_MAX_MS;
}

/* NCCL's result as a sentence. Its newest message is the process's, not the
 * communicator's, and an abort overwrites it: so now or never. */
static int nccl_failed(const struct nccl_api *api, nccl_result result,
                       const char *what, struct flaunch_error *error)
{
    const char *last =
        api->get_last_error != NULL ? api->get_last_error(NULL) : "";

    return fail_set(error, FLAUNCH_NCCL, -EIO, "%s: NCCL error %u: %s%s%.300s",
                    what, result, api->get_error_string(result),
                    last != NULL && last[0] != '\0' ? ": " : "",
                    last != NULL ? last : "");
}

static int cuda_failed(const struct cuda_api *api, cuda_error rc,
                       const char *what, struct flaunch_error *error)
{
    return fail_set(error, FLAUNCH_CUDA, -EIO, "%s: CUDA error %u: %s", what,
                    rc, api->get_error_string(rc));
}

/* --- one call that makes an id -------------------------------------------- */

struct make_id {
    struct nccl_context context;
    struct nccl_id id;
    int rc;
    struct flaunch_error error;
};

static void make_id_run(void *arg)
{
    struct make_id *task = arg;
    nccl_result result = task->context.nccl.get_unique_id(&task->id);

    if (result != NCCL_OK) {
        task->rc = nccl_failed(&task->context.nccl, result, "ncclGetUniqueId",
                               &task->error);
    }
}

int nccl_comm_make_id(const struct nccl_context *context, uint64_t deadline_ms,
                      struct nccl_id *id_out, struct flaunch_error *error)
{
    struct make_id *task = calloc(1, sizeof(*task));
    struct helper *helper;
    int rc = -ENOMEM;

    if (task != NULL) {
        task->context = *context;
        rc = helper_start(make_id_run, free, task, &helper);
    }
    if (rc < 0) {
        free(task);
        return fail_set(error, FLAUNCH_SYSTEM, rc, "out of memory or threads");
    }
    rc = helper_wait(helper, deadline_ms);
    if (rc < 0) {
        (void)fail_set(error, FLAUNCH_NCCL, rc,
                       "ncclGetUniqueId does not come back");
    } else if (task->rc < 0) {
        rc = fail_set(error, task->error.domain, task->rc, "%s",
                      task->error.text);
    } else {
        *id_out = task->id;
    }
    helper_release(helper);
    return rc;
}

/* --- initialisation ---------------------------------------------------------
 */

struct work {
    struct nccl_context context;
    int rank;
    int world_size;
    struct nccl_id *ids;
    int n_ids;
    atomic_int stage;
    atomic_bool give_up; /* asked from outside; the thread aborts */
    struct ncclComm *comm;
    int rc;
    struct flaunch_error error;
};

struct nccl_init {
    struct helper *helper;
    struct work *work;
};

static void work_destroy(void *arg)
{
    struct work *work = arg;

    free(work->ids);
    free(work);
}

/* Poll a communicator until no call is in progress. */
static int settle(struct work *work, nccl_result result, const char *what)
{
    const struct nccl_api *api = &work->context.nccl;
    uint64_t pause_ms = POLL_FIRST_MS;

    while (result == NCCL_IN_PROGRESS) {
        if (atomic_load(&work->give_up)) {
            return -ECANCELED;
        }
        pause_a_little(&pause_ms);
        if (api->comm_get_async_error(work->comm, &result) != NCCL_OK) {
            result = NCCL_INTERNAL_ERROR;
        }
    }
    return result == NCCL_OK ? 0 : nccl_failed(api, result, what, &work->error);
}

static int init_run(struct work *work)
{
    const struct nccl_api *api = &work->context.nccl;
    struct nccl_config config = nccl_config_non_blocking();
    nccl_result result;
    int rc;

    work->comm = NULL;
    if (work->n_ids > 1) {
        result = api->comm_init_rank_scalable(&work->comm, work->world_size,
                                              work->rank, work->n_ids,
                                              work->ids, &config);
    } else {
        result = api->comm_init_rank_config(&work->comm, work->world_size,
                                            work->ids[0], work->rank, &config);
    }
    rc = settle(work,
                work->comm == NULL && result == NCCL_IN_PROGRESS
                    ? NCCL_INTERNAL_ERROR
                    : result,
                "ncclCommInitRankConfig");
    if (rc == 0 && work->comm == NULL) {
        rc = fail_set(&work->error, FLAUNCH_NCCL, -EIO,
                      "ncclCommInitRankConfig gave no communicator");
    }
    return rc;
}

/* Wait for the stream, with a look at the communicator. */
static int stream_settle(struct work *work, struct CUstream_st *stream)
{
    const struct cuda_api *cuda = &work->context.cuda;
    const struct nccl_api *nccl = &work->context.nccl;
    uint64_t pause_ms = POLL_FIRST_MS;

    for (;;) {
        nccl_result result = NCCL_OK;
        cuda_error rc = cuda->stream_query(stream);

        if (rc == CUDA_OK) {
            return 0;
        }
        if (rc != CUDA_NOT_READY) {
            return cuda_failed(cuda, rc, "the first all-reduce", &work->error);
        }
        if (nccl->comm_get_async_error(work->comm, &result) != NCCL_OK ||
            (result != NCCL_OK && result != NCCL_IN_PROGRESS)) {
            return nccl_failed(nccl, result, "the first all-reduce",
                               &work->error);
        }
        if (atomic_load(&work->give_up)) {
            return -ECANCELED;
        }
        pause_a_little(&pause_ms);
    }
}

static int reduce_one(struct work *work, void *data, struct CUstream_st *stream)
{
    const struct cuda_api *cuda = &work->context.cuda;
    int32_t one = 1;
    cuda_error cuda_rc =
        cuda->memcpy(data, &one, sizeof(one), CUDA_MEMCPY_HOST_TO_DEVICE);
    int rc;

    if (cuda_rc != CUDA_OK) {
        return cuda_failed(cuda, cuda_rc, "cudaMemcpy", &work->error);
    }
    rc = settle(work,
                work->context.nccl.all_reduce(data, data, 1, NCCL_INT32,
                                              NCCL_SUM, work->comm, stream),
                "the first all-reduce");
    if (rc == 0) {
        rc = stream_settle(work, stream);
    }
    if (rc < 0) {
        return rc;
    }
    cuda_rc = cuda->memcpy(&one, data, sizeof(one), CUDA_MEMCPY_DEVICE_TO_HOST);
    if (cuda_rc != CUDA_OK) {
        return cuda_failed(cuda, cuda_rc, "cudaMemcpy", &work->error);
    }
    return one == work->world_size
               ? 0
               : fail_set(&work->error, FLAUNCH_NCCL, -EIO,
                          "the first all-reduce over %d ranks gave %d",
                          work->world_size, (int)one);
}

/*
 * NCCL connects its channels at the first collective only: an initialisation
 * that went well does not prove that anything flows.
 */
static int warm_up(struct work *work)
{
    const struct cuda_api *cuda = &work->context.cuda;
    struct CUstream_st *stream = NULL;
    void *data = NULL;
    cuda_error cuda_rc;
    int rc;

    cuda_rc = cuda->stream_create_with_flags(&stream, CUDA_STREAM_NON_BLOCKING);
    if (cuda_rc != CUDA_OK) {
        return cuda_failed(cuda, cuda_rc, "cudaStreamCreate", &work->error);
    }
    cuda_rc = cuda->malloc(&data, sizeof(int32_t));
    if (cuda_rc != CUDA_OK) {
        (void)cuda->stream_destroy(stream);
        return cuda_failed(cuda, cuda_rc, "cudaMalloc", &work->error);
    }
    rc = reduce_one(work, data, stream);
    if (rc == 0) { /* else the stream may still write to it */
        (void)cuda->free(data);
        (void)cuda->stream_destroy(stream);
    }
    return rc;
}

static void work_run(void *arg)
{
    struct work *work = arg;
    cuda_error rc = work->context.cuda.set_device(work->context.device);

    work->rc = rc == CUDA_OK ? init_run(work)
                             : cuda_failed(&work->context.cuda, rc,
                                           "cudaSetDevice", &work->error);
    if (work->rc == 0) {
        atomic_store(&work->stage, NCCL_STAGE_WARM_UP);
        work->rc = warm_up(work);
    }
}

int nccl_init_start(const struct nccl_context *context, int rank,
                    int world_size, const struct nccl_id *ids, int n_ids,
                    struct nccl_init **init_out, struct flaunch_error *error)
{
    struct nccl_init *init = calloc(1, sizeof(*init));
    struct work *work = calloc(1, sizeof(*work));
    struct nccl_id *copy = calloc((size_t)n_ids, sizeof(*copy));
    int rc = -ENOMEM;

    if (init != NULL && work != NULL && copy != NULL) {
        memcpy(copy, ids, (size_t)n_ids * sizeof(*copy));
        *work = (struct work){ .context = *context,
                               .rank = rank,
                               .world_size = world_size,
                               .ids = copy,
                               .n_ids = n_ids };
        init->work = work;
        rc = helper_start(work_run, work_destroy, work, &init->helper);
    }
    if (rc < 0) {
        free(copy);
        free(work);
        free(init);
        return fail_set(error, FLAUNCH_SYSTEM, rc, "out of memory or threads");
    }
    *init_out = init;
    return 0;
}

enum nccl_stage nccl_init_stage(const struct nccl_init *init)
{
    return (enum nccl_stage)atomic_load(&init->work->stage);
}

int nccl_init_wait(struct nccl_init *init, uint64_t deadline_ms)
{
    return helper_wait(init->helper, deadline_ms);
}

bool nccl_init_failed(const struct nccl_init *init, struct flaunch_error *error)
{
    if (init->work->rc == 0) {
        return false;
    }
    (void)fail_set(error, init->work->error.domain, init->work->rc, "%s",
                   init->work->error.text);
    return true;
}

/* --- abort ------------------------------------------------------------------
 */

struct end {
    struct nccl_context context;
    struct ncclComm *comm;
    uint64_t deadline_ms; /* for finalising; 0: abort at once */
};

/* Whether the communicator could be finalised in time. */
static bool finalize(struct end *end)
{
    const struct nccl_api *api = &end->context.nccl;
    nccl_result result = api->comm_finalize(end->comm);
    uint64_t pause_ms = POLL_FIRST_MS;

    while (result == NCCL_IN_PROGRESS && clock_poll_ms(end->deadline_ms) > 0) {
        pause_a_little(&pause_ms);
        if (api->comm_get_async_error(end->comm, &result) != NCCL_OK) {
            return false;
        }
    }
    return result == NCCL_OK;
}

static void end_run(void *arg)
{
    struct end *end = arg;
    const struct nccl_api *api = &end->context.nccl;

    (void)end->context.cuda.set_device(end->context.device);
    if (end->deadline_ms > 0 && finalize(end)) {
        (void)api->comm_destroy(end->comm);
    } else {
        (void)api->comm_abort(end->comm);
    }
}

/* Finalise for a while, then abort, for which there is as much time. */
static int end_comm(const struct nccl_context *context, struct ncclComm *comm,
                    uint64_t finalize_ms, uint64_t abort_ms)
{
    struct end *end = calloc(1, sizeof(*end));
    struct helper *helper;
    int rc;

    if (end == NULL) {
        return -ENOMEM;
    }
    *end =
        (struct end){ .context = *context,
                      .comm = comm,
                      .deadline_ms =
                          finalize_ms > 0 ? clock_deadline(finalize_ms) : 0 };
    rc = helper_start(end_run, free, end, &helper);
    if (rc < 0) {
        free(end);
        return rc;
    }
    rc = helper_wait(helper, clock_deadline(finalize_ms + abort_ms));
    helper_release(helper);
    return rc < 0 ? -EDEADLK : 0;
}

int nccl_init_finish(struct nccl_init *init, bool take, uint64_t abort_ms,
                     struct ncclComm **comm_out)
{
    struct work *work = init->work;
    uint64_t deadline_ms = clock_deadline(abort_ms);
    int rc;

    *comm_out = NULL;
    atomic_store(&work->give_up, !take);
    rc = helper_wait(init->helper, deadline_ms);
    if (rc < 0) {
        rc = -EDEADLK; /* in a call that does not come back */
    } else if (take) {
        *comm_out = work->comm;
    } else if (work->comm != NULL) {
        rc = end_comm(&work->context, work->comm, 0,
                      (uint64_t)clock_poll_ms(deadline_ms) + 1);
    }
    helper_release(init->helper);
    free(init);
    return rc;
}

void nccl_comm_close(const struct nccl_context *context, struct ncclComm *comm,
                     bool broken, uint64_t timeout_ms)
{
    nccl_result result = NCCL_OK;

    if (context->nccl.comm_get_async_error(comm, &result) != NCCL_OK ||
        result != NCCL_OK) {
        broken = true;
    }
    (void)end_comm(context, comm, broken ? 0 : timeout_ms, timeout_ms);
}

/* --- later --------------------------------------------------------------- */

int nccl_comm_wait(const struct nccl_context *context, struct ncclComm *comm,
                   uint64_t deadline_ms, struct flaunch_error *error)
{
    const struct nccl_api *api = &context->nccl;
    uint64_t pause_ms = POLL_FIRST_MS;

    for (;;) {
        nccl_result result = NCCL_OK;

        if (api->comm_get_async_error(comm, &result) != NCCL_OK) {
            result = NCCL_INTERNAL_ERROR;
        }
        if (result == NCCL_OK) {
            return 0;
        }
        if (result != NCCL_IN_PROGRESS) {
            return nccl_failed(api, result, "a call of NCCL", error);
        }
        if (clock_poll_ms(deadline_ms) == 0) {
            return fail_set(error, FLAUNCH_NCCL, -ETIMEDOUT,
                            "a call of NCCL is still in progress");
        }
        pause_a_little(&pause_ms);
    }
}

int nccl_comm_split(const struct nccl_context *context, struct ncclComm *comm,
                    int color, int key, uint64_t deadline_ms,
                    struct ncclComm **comm_out, struct flaunch_error *error)
{
    struct nccl_config config = nccl_config_non_blocking();
    const struct nccl_api *api = &context->nccl;
    struct ncclComm *split = NULL;
    nccl_result result;
    int rc;

    if (api->comm_split == NULL) {
        return fail_set(error, FLAUNCH_NCCL, -ENOTSUP,
                        "this NCCL has no ncclCommSplit");
    }
    result = api->comm_split(comm, color, key, &split, &config);
    if (result != NCCL_OK && result != NCCL_IN_PROGRESS) {
        return nccl_failed(api, result, "ncclCommSplit", error);
    }
    rc = nccl_comm_wait(context, comm, deadline_ms, error);
    if (rc == 0 && split != NULL) {
        rc = nccl_comm_wait(context, split, deadline_ms, error);
    }
    if (rc == 0 && split == NULL && color != NCCL_SPLIT_NONE) {
        rc = fail_set(error, FLAUNCH_NCCL, -EIO,
                      "ncclCommSplit gave no communicator");
    }
    if (rc < 0) {
        return rc; /* split is left to NCCL: aborting it may hang */
    }
    *comm_out = split;
    return 0;
}
