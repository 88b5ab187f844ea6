#include "worker/flaunch.h"

#include "common/clock.h"
#include "common/env_names.h"
#include "common/net.h"
#include "common/parse.h"
#include "common/store_host.h"
#include "common/version.h"
#include "worker/checkin.h"
#include "worker/cuda_api.h"
#include "worker/detect.h"
#include "worker/device.h"
#include "worker/fail.h"
#include "worker/gloo_group.h"
#include "worker/nccl_api.h"
#include "worker/store_client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INIT_TIMEOUT_MS 300000
#define POLL_MS 5        /* rank 0 as host, waiting for the last client */
#define FAREWELL_MS 3000 /* the same after a bad verdict */

enum backend {
    BACKEND_NONE,
    BACKEND_GLOO,
    BACKEND_NCCL,
};

static const char *const backend_names[] = { "none", "gloo", "nccl" };

struct flaunch {
    struct detected detected;
    enum backend backend;
    int device;
    char device_text[16];
    uint64_t deadline_ms;
    struct store_client client;
    struct store_host *store; /* rank 0, where nobody else serves one */
    struct gloo_group gloo;
    struct cuda_api cuda;
    char nonce[TOKEN_LEN + 1];
};

static const char *env_get(const char *name, void *arg)
{
    (void)arg;
    return getenv(name);
}

static bool debug_asked(const char *word)
{
    const char *cursor = getenv(ENV_FLAUNCH_DEBUG);
    const char *item;
    size_t len;

    while (parse_list_next(&cursor, &item, &len)) {
        if (len == strlen(word) && memcmp(item, word, len) == 0) {
            return true;
        }
    }
    return false;
}

static int options_read(const struct flaunch_options *given,
                        struct flaunch_options *options,
                        struct flaunch_error *error)
{
    *options = (struct flaunch_options)FLAUNCH_OPTIONS_INIT;
    if (given == NULL) {
        return 0;
    }
    /* A program built with an older header gives fewer fields; one built with
     * a newer header may ask for what this library does not know. */
    if (given->size < sizeof(size_t) || given->size > sizeof(*options)) {
        return fail_set(error, FLAUNCH_USAGE, -EINVAL,
                        "options.size is %zu; set it to sizeof(struct "
                        "flaunch_options) (%zu in this library)",
                        given->size, sizeof(*options));
    }
    memcpy(options, given, given->size);
    return 0;
}

static int backend_read(const char *name, enum backend *backend_out,
                        struct flaunch_error *error)
{
    size_t i;

    if (name == NULL) {
        *backend_out = BACKEND_NONE;
        return 0;
    }
    for (i = 0; i < sizeof(backend_names) / sizeof(backend_names[0]); i++) {
        if (strcmp(name, backend_names[i]) == 0) {
            *backend_out = (enum backend)i;
            return 0;
        }
    }
    return fail_set(error, FLAUNCH_USAGE, -EINVAL,
                    "unknown backend %s: none, gloo and nccl are known", name);
}

static int deadline_read(uint64_t timeout_ms, uint64_t *deadline_out,
                         struct flaunch_error *error)
{
    const char *text = getenv(ENV_FLAUNCH_INIT_TIMEOUT);

    if (timeout_ms == 0) {
        timeout_ms = INIT_TIMEOUT_MS;
        if (text != NULL &&
            (parse_seconds(text, &timeout_ms) < 0 || timeout_ms == 0)) {
            return fail_set(error, FLAUNCH_ENVIRONMENT, -EINVAL,
                            "%s=%s: give seconds, such as 300",
                            ENV_FLAUNCH_INIT_TIMEOUT, text);
        }
    }
    *deadline_out = clock_deadline(timeout_ms);
    return 0;
}

/* Load NCCL and CUDA and choose a GPU; the backend that needs one fails where
 * there is none. */
static int nccl_prepare(struct flaunch *job,
                        const struct flaunch_options *options,
                        struct checkin_record *self,
                        struct flaunch_error *error)
{
    struct device_request request = {
        .wanted = options->device_plus_1 - 1,
        .local_rank = job->detected.local_rank,
        .no_set_device_rank = options->no_set_device_rank != 0,
    };
    struct nccl_api nccl;
    int version = 0;
    cuda_error cuda_rc;
    int rc;

    rc = cuda_api_load(&job->cuda, error);
    if (rc == 0) {
        rc = cuda_api_count(&job->cuda, &request.n_gpus, error);
    }
    if (rc == 0) {
        rc = device_choose(&request, &job->device, error);
    }
    if (rc < 0) {
        return rc;
    }
    if (job->device == DEVICE_CPU) {
        return fail_set(error, FLAUNCH_CUDA, -ENODEV,
                        "the backend nccl needs a GPU and none is visible "
                        "here");
    }
    cuda_rc = job->cuda.set_device(job->device);
    if (cuda_rc == CUDA_OK) {
        cuda_rc = job->cuda.device_get_pci_bus_id(
            self->gpu, (int)sizeof(self->gpu), job->device);
    }
    if (cuda_rc != CUDA_OK) {
        return fail_set(error, FLAUNCH_CUDA, -ENODEV,
                        "CUDA device %d: CUDA error %u: %s", job->device,
                        cuda_rc, job->cuda.get_error_string(cuda_rc));
    }
    rc = nccl_api_load(&nccl, error);
    if (rc == 0) {
        (void)nccl.get_version(&version);
        self->nccl_version = (uint32_t)version;
        rc = fail_set(error, FLAUNCH_NCCL, -ENOTSUP,
                      "this version of libflaunch opens no NCCL communicator; "
                      "use the backend none and NCCL's own calls");
    }
    return rc;
}

/* What this rank needs of its own machine; a failure is told to the others. */
static int backend_prepare(struct flaunch *job,
                           const struct flaunch_options *options,
                           struct checkin_record *self,
                           struct flaunch_error *error)
{
    job->device = DEVICE_CPU;
    switch (job->backend) {
    case BACKEND_GLOO:
        return gloo_group_load(&job->gloo, error);
    case BACKEND_NCCL:
        return nccl_prepare(job, options, self, error);
    default:
        return 0;
    }
}

static void read_line(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : 0;

    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (fd >= 0) {
        (void)close(fd);
    }
}

static void self_describe(const struct flaunch *job,
                          struct checkin_record *self)
{
    self->rank = (uint32_t)job->detected.rank;
    self->world_size = (uint32_t)job->detected.world_size;
    self->local_rank = (uint32_t)job->detected.local_rank;
    self->local_rank_assumed = job->detected.launcher == LAUNCHER_ENV &&
                               getenv(ENV_LOCAL_RANK) == NULL;
    self->pid = (uint32_t)getpid();
    (void)snprintf(self->backend, sizeof(self->backend), "%s",
                   backend_names[job->backend]);
    if (gethostname(self->host, sizeof(self->host) - 1) < 0) {
        (void)snprintf(self->host, sizeof(self->host), "(unknown host)");
    }
    read_line("/proc/sys/kernel/random/boot_id", self->machine,
              sizeof(self->machine));
}

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0;
}

/* Rank 0 serves the store where no launcher does. */
static int store_serve(struct flaunch *job, struct flaunch_error *error)
{
    enum net_scope scope =
        is_loopback(job->detected.host) ? NET_LOOPBACK : NET_ALL;
    struct err err;
    uint16_t port;
    int fd;

    if (job->detected.agent_store || job->detected.rank != 0) {
        return 0;
    }
    if (net_listen(scope, job->detected.port, &fd, &port, &err) < 0 ||
        store_host_start(fd, &job->store, &err) < 0) {
        return fail_set(error, FLAUNCH_STORE, err.code,
                        "rank 0 cannot serve the store at %s port %u "
                        "(MASTER_ADDR, MASTER_PORT): %s",
                        job->detected.host, job->detected.port, err.text);
    }
    return 0;
}

static int store_connect(struct flaunch *job, struct flaunch_error *error)
{
    struct err err;

    if (store_client_connect(&job->client, job->detected.host,
                             job->detected.port, job->deadline_ms, &err) < 0) {
        return fail_set(error, FLAUNCH_STORE, err.code,
                        "rank %d cannot reach the store: %s",
                        job->detected.rank, err.text);
    }
    return 0;
}

/*
 * The store is needed no longer. Where rank 0 serves it, the others say so,
 * and it waits until n_others have: it must not leave first.
 */
static int store_leave(struct flaunch *job, uint32_t n_others,
                       uint64_t deadline_ms, struct flaunch_error *error)
{
    int64_t n_left = 0;
    char key[64];
    struct err err;
    int rc = 0;

    (void)snprintf(key, sizeof(key), "flaunch/left/%s", job->nonce);
    if (!job->detected.agent_store && job->detected.host[0] != '\0') {
        rc = store_client_add(&job->client, key, job->store == NULL,
                              deadline_ms, &n_left, &err);
        while (rc == 0 && job->store != NULL && n_left < n_others) {
            if (clock_poll_ms(deadline_ms) == 0) {
                rc = err_set(&err, -ETIMEDOUT,
                             "%lld other ranks did not finish flaunch_init",
                             (long long)(n_others - n_left));
                break;
            }
            clock_sleep_ms(POLL_MS);
            rc = store_client_add(&job->client, key, 0, deadline_ms, &n_left,
                                  &err);
        }
    }
    store_client_close(&job->client);
    return rc < 0 ? fail_set(error, FLAUNCH_STORE, rc, "%s", err.text) : 0;
}

/* Meet the other ranks; what went wrong here so far goes to all of them. */
static int meet(struct flaunch *job, struct checkin_record *self, int own_rc,
                struct flaunch_error *error)
{
    uint32_t n_told = 0;
    int rc;

    if (own_rc < 0) {
        (void)snprintf(self->error, sizeof(self->error), "%.511s", error->text);
    }
    if (job->detected.host[0] == '\0') {
        return own_rc; /* a job of one has nobody to tell */
    }
    rc = store_serve(job, error);
    if (rc == 0) {
        rc = store_connect(job, error);
    }
    if (rc == 0) {
        rc = checkin(&job->client, self, job->deadline_ms, &n_told, error);
    }
    (void)snprintf(job->nonce, sizeof(job->nonce), "%s", self->nonce);
    if (rc < 0 && job->nonce[0] != '\0') {
        /* Those who were told must have read it before the store ends. */
        (void)store_leave(job, n_told, clock_deadline(FAREWELL_MS), NULL);
    }
    return rc;
}

static int backend_open(struct flaunch *job, struct flaunch_error *error)
{
    char prefix[64];

    if (job->backend != BACKEND_GLOO || job->detected.world_size == 1) {
        return 0; /* a rank alone has nobody to connect to */
    }
    (void)snprintf(prefix, sizeof(prefix), "flaunch/gloo/%s", job->nonce);
    return gloo_group_open(&job->gloo, job->detected.rank,
                           job->detected.world_size, &job->client, prefix,
                           job->deadline_ms, error);
}

static int job_open(struct flaunch *job, const struct flaunch_options *options,
                    struct flaunch_error *error)
{
    struct checkin_record self = { 0 };
    int rc;

    rc = backend_read(options->backend, &job->backend, error);
    if (rc == 0) {
        rc = deadline_read(options->timeout_ms, &job->deadline_ms, error);
    }
    if (rc == 0) {
        rc = detect(env_get, NULL, options->launcher, &job->detected, error);
    }
    if (rc == 0 && debug_asked("env")) {
        (void)fprintf(stderr, "libflaunch: %s", job->detected.explanation);
    }
    if (rc < 0) {
        return rc;
    }
    self_describe(job, &self);
    rc = backend_prepare(job, options, &self, error);
    rc = meet(job, &self, rc, error);
    if (rc == 0) {
        rc = backend_open(job, error);
    }
    if (rc == 0) {
        rc = store_leave(job, (uint32_t)job->detected.world_size - 1,
                         job->deadline_ms, error);
    }
    return rc;
}

int flaunch_init(struct flaunch **job_out,
                 const struct flaunch_options *options,
                 struct flaunch_error *error)
{
    struct flaunch_error own_error = { 0 };
    struct flaunch_options read;
    struct flaunch *job;
    int rc;

    if (error == NULL) {
        error = &own_error; /* the other ranks are told of it all the same */
    }
    *error = (struct flaunch_error){ 0 };
    if (job_out == NULL) {
        return fail_set(error, FLAUNCH_USAGE, -EINVAL, "job_out is NULL");
    }
    rc = options_read(options, &read, error);
    if (rc < 0) {
        return rc;
    }
    job = calloc(1, sizeof(*job));
    if (job == NULL) {
        return fail_set(error, FLAUNCH_SYSTEM, -ENOMEM, "out of memory");
    }
    job->client.fd = -1;
    rc = job_open(job, &read, error);
    if (rc < 0) {
        flaunch_finalize(job);
        return rc;
    }
    if (job->device == DEVICE_CPU) {
        (void)snprintf(job->device_text, sizeof(job->device_text), "cpu");
    } else {
        (void)snprintf(job->device_text, sizeof(job->device_text), "cuda:%d",
                       job->device);
    }
    *job_out = job;
    return 0;
}

void flaunch_finalize(struct flaunch *job)
{
    if (job == NULL) {
        return;
    }
    gloo_group_close(&job->gloo);
    store_client_close(&job->client);
    store_host_stop(job->store);
    free(job);
}

int flaunch_rank(const struct flaunch *job)
{
    return job->detected.rank;
}

int flaunch_world_size(const struct flaunch *job)
{
    return job->detected.world_size;
}

int flaunch_local_rank(const struct flaunch *job)
{
    return job->detected.local_rank;
}

int flaunch_local_world_size(const struct flaunch *job)
{
    return job->detected.local_world_size;
}

int flaunch_distributed(const struct flaunch *job)
{
    return job->detected.launcher != LAUNCHER_NONE;
}

const char *flaunch_device(const struct flaunch *job)
{
    return job->device_text;
}

int flaunch_device_index(const struct flaunch *job)
{
    return job->device;
}

const char *flaunch_backend(const struct flaunch *job)
{
    return backend_names[job->backend];
}

const char *flaunch_launcher(const struct flaunch *job)
{
    return launcher_name(job->detected.launcher);
}

const char *flaunch_explain(const struct flaunch *job)
{
    return job->detected.explanation;
}

const char *flaunch_version(void)
{
    return FLAUNCH_VERSION_TEXT;
}

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
                    backend_names[job->backend]);
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
