#include "common/clock.h"
#include "worker/backend.h"
#include "worker/fail.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A call of NCCL's after flaunch_init. */
#define NCCL_CALL_MS 300000

/*
 * The collectives. All begin alike: the backend, the arguments; and a rank
 * alone has its result without gloo.
 */

static int need_gloo(const struct flaunch *job, const char *call,
                     struct flaunch_error *error)
{
    if (job->backend == BACKEND_GLOO) {
        return job_check_pid(job, error);
    }
    return fail_set(error, FLAUNCH_USAGE, -ENOTSUP,
                    "%s works on host memory, with the backend gloo; this job "
                    "has %s%s",
                    call, backend_name(job->backend),
                    job->backend == BACKEND_NCCL
                        ? ": use NCCL's own calls with flaunch_nccl_comm()"
                        : "");
}

static int need_gloo_and_type(const struct flaunch *job, const char *call,
                              enum flaunch_type type,
                              struct flaunch_error *error)
{
    int rc = need_gloo(job, call, error);

    if (rc == 0 && (unsigned)type > FLAUNCH_INT64) {
        rc = fail_set(error, FLAUNCH_USAGE, -EINVAL, "%s: unknown type %d",
                      call, (int)type);
    }
    return rc;
}

static bool is_alone(const struct flaunch *job)
{
    return job->detected.world_size == 1;
}

static size_t type_size(enum flaunch_type type)
{
    return type == FLAUNCH_FLOAT || type == FLAUNCH_INT32 ? 4 : 8;
}

static int gloo_result(const struct flaunch *job, int rc, const char *call,
                       const char *why, struct flaunch_error *error)
{
    return rc < 0 ? fail_set(error, FLAUNCH_GLOO, rc, "%s on rank %d: %s", call,
                             job->detected.rank, why)
                  : 0;
}

/* What a call of a collective is about. */
enum collective {
    ALL_REDUCE,
    BROADCAST,
    ALL_GATHER,
};

static const char *const collective_names[] = { "flaunch_all_reduce",
                                                "flaunch_broadcast",
                                                "flaunch_all_gather" };

/* The same on every rank, or gloo hangs or ends the process. */
struct shape {
    int64_t collective;
    int64_t count;
    int64_t type;
    int64_t detail; /* operation or root */
};

#define SHAPE_LEN (sizeof(struct shape) / sizeof(int64_t))

static int shapes_differ(const struct shape *a, const struct shape *b, int rank,
                         struct flaunch_error *error)
{
    return fail_set(error, FLAUNCH_USAGE, -EINVAL,
                    "ranks do not make the same call: rank 0 calls %s with "
                    "%lld elements of type %lld (operation or root %lld), rank "
                    "%d calls %s with %lld of type %lld (%lld)",
                    collective_names[a->collective % 3], (long long)a->count,
                    (long long)a->type, (long long)a->detail, rank,
                    collective_names[b->collective % 3], (long long)b->count,
                    (long long)b->type, (long long)b->detail);
}

/* With FLAUNCH_DEBUG=detail: tell each other first. */
static int check_shapes(struct flaunch *job, struct shape mine,
                        struct flaunch_error *error)
{
    int n = job->detected.world_size;
    struct shape *all;
    char why[512] = "";
    int rank;
    int rc;

    if (!job->check_shapes || is_alone(job)) {
        return 0;
    }
    all = calloc((size_t)n, sizeof(*all));
    if (all == NULL) {
        return fail_set(error, FLAUNCH_SYSTEM, -ENOMEM, "out of memory");
    }
    rc = job->gloo.shim->all_gather(job->gloo.group, &mine, all, SHAPE_LEN,
                                    (int)FLAUNCH_INT64, why, sizeof(why));
    rc = gloo_result(job, rc, "comparing calls", why, error);
    for (rank = 1; rank < n && rc == 0; rank++) {
        if (memcmp(&all[0], &all[rank], sizeof(*all)) != 0) {
            rc = shapes_differ(&all[0], &all[rank], rank, error);
        }
    }
    free(all);
    return rc;
}

int flaunch_all_reduce(struct flaunch *job, void *data, size_t count,
                       enum flaunch_type type, enum flaunch_op op,
                       struct flaunch_error *error)
{
    char why[512] = "";
    int rc = need_gloo_and_type(job, __func__, type, error);

    if (rc == 0 && (unsigned)op > FLAUNCH_PRODUCT) {
        rc = fail_set(error, FLAUNCH_USAGE, -EINVAL, "%s: unknown operation %d",
                      __func__, (int)op);
    }
    if (rc == 0) {
        rc = check_shapes(
            job, (struct shape){ ALL_REDUCE, (int64_t)count, type, op }, error);
    }
    if (rc < 0 || count == 0 || is_alone(job)) {
        return rc;
    }
    rc = job->gloo.shim->all_reduce(job->gloo.group, data, count, (int)type,
                                    (int)op, why, sizeof(why));
    return gloo_result(job, rc, __func__, why, error);
}

int flaunch_broadcast(struct flaunch *job, void *data, size_t count,
                      enum flaunch_type type, int root,
                      struct flaunch_error *error)
{
    char why[512] = "";
    int rc = need_gloo_and_type(job, __func__, type, error);

    if (rc == 0 && (root < 0 || root >= job->detected.world_size)) {
        rc = fail_set(error, FLAUNCH_USAGE, -EINVAL,
                      "%s: root %d is no rank of a job of %d", __func__, root,
                      job->detected.world_size);
    }
    if (rc == 0) {
        rc = check_shapes(
            job, (struct shape){ BROADCAST, (int64_t)count, type, root },
            error);
    }
    if (rc < 0 || count == 0 || is_alone(job)) {
        return rc;
    }
    rc = job->gloo.shim->broadcast(job->gloo.group, data, count, (int)type,
                                   root, why, sizeof(why));
    return gloo_result(job, rc, __func__, why, error);
}

int flaunch_all_gather(struct flaunch *job, const void *in, void *out,
                       size_t count, enum flaunch_type type,
                       struct flaunch_error *error)
{
    char why[512] = "";
    int rc = need_gloo_and_type(job, __func__, type, error);

    if (rc == 0) {
        rc = check_shapes(
            job, (struct shape){ ALL_GATHER, (int64_t)count, type, 0 }, error);
    }
    if (rc < 0 || count == 0) {
        return rc;
    }
    if (is_alone(job)) {
        memcpy(out, in, count * type_size(type));
        return 0;
    }
    rc = job->gloo.shim->all_gather(job->gloo.group, in, out, count, (int)type,
                                    why, sizeof(why));
    return gloo_result(job, rc, __func__, why, error);
}

int flaunch_barrier(struct flaunch *job, struct flaunch_error *error)
{
    char why[512] = "";
    int rc = need_gloo(job, __func__, error);

    if (rc < 0 || is_alone(job)) {
        return rc;
    }
    rc = job->gloo.shim->barrier(job->gloo.group, why, sizeof(why));
    return gloo_result(job, rc, __func__, why, error);
}

/*
 * NCCL: the communicator, and parts of it.
 */

static int need_nccl(const struct flaunch *job, const char *call,
                     struct flaunch_error *error)
{
    if (job->backend == BACKEND_NCCL) {
        return job_check_pid(job, error);
    }
    return fail_set(error, FLAUNCH_USAGE, -ENOTSUP,
                    "%s needs the backend nccl; this job has %s", call,
                    backend_name(job->backend));
}

/* What a later call may take, where flaunch_init had another limit. */
static uint64_t later_deadline(uint64_t timeout_ms)
{
    return clock_deadline(timeout_ms != 0 ? timeout_ms : NCCL_CALL_MS);
}

void *flaunch_nccl_comm(const struct flaunch *job)
{
    return job->backend == BACKEND_NCCL && job_check_pid(job, NULL) == 0
               ? job->nccl.comm
               : NULL;
}

int flaunch_comm_split(struct flaunch *job, int color, int key,
                       uint64_t timeout_ms, void **comm_out,
                       struct flaunch_error *error)
{
    int rc = need_nccl(job, __func__, error);

    if (rc == 0 && (comm_out == NULL || color < -1)) {
        rc = fail_set(error, FLAUNCH_USAGE, -EINVAL,
                      "%s: a color is 0 or more, or -1 for none", __func__);
    }
    return rc < 0
               ? rc
               : nccl_group_split(&job->nccl, color, key,
                                  later_deadline(timeout_ms), comm_out, error);
}

int flaunch_comm_wait(struct flaunch *job, void *comm, uint64_t timeout_ms,
                      struct flaunch_error *error)
{
    int rc = need_nccl(job, __func__, error);

    if (rc == 0 && comm == NULL) {
        rc = fail_set(error, FLAUNCH_USAGE, -EINVAL, "%s: comm is NULL",
                      __func__);
    }
    if (rc == 0) {
        rc = nccl_comm_wait(&job->nccl.context, comm,
                            later_deadline(timeout_ms), error);
        job->nccl.broken = job->nccl.broken || rc < 0;
    }
    return rc;
}
