#include "worker/fail.h"
#include "worker/job.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/*
 * The collectives. All begin alike: the backend, the arguments; and a rank
 * alone has its result without gloo.
 */

static int need_gloo(const struct flaunch *job, const char *call,
                     struct flaunch_error *error)
{
    if (job->backend == BACKEND_GLOO) {
        return 0;
    }
    return fail_set(error, FLAUNCH_USAGE, -ENOTSUP,
                    "%s needs the backend gloo; this job has %s", call,
                    job_backend_name(job->backend));
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
