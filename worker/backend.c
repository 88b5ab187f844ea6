#include "worker/backend.h"

#include "common/clock.h"
#include "common/env_names.h"
#include "worker/fail.h"
#include "worker/nccl_env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *backend_name(enum backend backend)
{
    static const char *const names[N_BACKENDS] = { "none", "gloo", "nccl",
                                                   "auto" };

    return names[backend];
}

int backend_read(const char *name, enum backend *backend_out,
                 struct flaunch_error *error)
{
    int i;

    if (name == NULL) {
        *backend_out = BACKEND_NONE;
        return 0;
    }
    for (i = 0; i < N_BACKENDS; i++) {
        if (strcmp(name, backend_name((enum backend)i)) == 0) {
            *backend_out = (enum backend)i;
            return 0;
        }
    }
    return fail_set(error, FLAUNCH_USAGE, -EINVAL,
                    "unknown backend %.64s: none, gloo, nccl and auto are "
                    "known",
                    name);
}

/* What bound GPUs to tasks, for the sentence where none is left. */
static const char *find_binding(char *text, size_t size)
{
    static const char *const names[] = { "SLURM_GPUS_PER_TASK",
                                         "SLURM_GPU_BIND", "SLURM_STEP_GPUS" };
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);

        if (value != NULL) {
            (void)snprintf(text, size, "%s=%.32s", names[i], value);
            return text;
        }
    }
    return NULL;
}

/* A driver that hangs may take half of the time: the others must still learn
 * of it. */
static uint64_t device_deadline(const struct flaunch *job)
{
    return clock_deadline((uint64_t)clock_poll_ms(job->deadline_ms) / 2);
}

/*
 * What no two ranks may have in common; unless the user says that they may, or
 * that the hosts are others than they seem (both are NCCL's own settings).
 */
static void describe_gpu(const struct cuda_device *cuda,
                         struct checkin_record *self)
{
    const char *shared = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    const char *host_id = getenv("NCCL_HOSTID");

    if (shared != NULL && strcmp(shared, "1") == 0) {
        return;
    }
    (void)snprintf(self->gpu, sizeof(self->gpu), "%.40s%s%.20s",
                   cuda->uuid[0] != '\0' ? cuda->uuid : cuda->pci,
                   host_id != NULL ? " of " : "",
                   host_id != NULL ? host_id : "");
}

static int device_prepare(struct flaunch *job,
                          const struct flaunch_options *options,
                          struct checkin_record *self,
                          struct flaunch_error *error)
{
    const char *visible = getenv(ENV_CUDA_VISIBLE_DEVICES);
    char binding[80];
    struct device_request request = {
        .wanted = options->device_plus_1 - 1,
        .local_rank = job->detected.local_rank,
        .local_world_size = job->detected.local_world_size,
        .no_set_device_rank = options->no_set_device_rank != 0,
        .visible = visible,
        .binding = find_binding(binding, sizeof(binding)),
    };
    int rc =
        cuda_device_open(&job->cuda, &request, device_deadline(job), error);

    (void)snprintf(self->visible, sizeof(self->visible), "%.127s",
                   visible != NULL ? visible : "(not set)");
    if (rc < 0) {
        return rc;
    }
    self->device_plus_1 = (uint32_t)(job->cuda.device + 1);
    describe_gpu(&job->cuda, self);
    return 0;
}

/* One visible GPU for each of several ranks: they cannot reach each other's. */
static void note_isolation(struct flaunch *job)
{
    if (job->cuda.n_visible == 1 && job->detected.local_world_size > 1) {
        detected_explain(
            &job->detected,
            "device: this rank sees one GPU of its node's; NCCL is "
            "slow where ranks cannot see each other's\n");
    }
}

static int nccl_prepare(struct flaunch *job, struct checkin_record *self,
                        struct flaunch_error *error)
{
    char notes[512] = "";
    int rc;

    if (job->cuda.device == DEVICE_CPU) {
        return fail_set(error, FLAUNCH_CUDA, -ENODEV,
                        "the backend nccl needs a GPU and none is to be had "
                        "here: %s",
                        job->cuda.why_none);
    }
    rc = nccl_group_load(&job->nccl, &job->cuda, error);
    if (rc < 0) {
        return rc;
    }
    self->nccl_version = (uint32_t)job->nccl.version;
    (void)snprintf(self->nccl_path, sizeof(self->nccl_path), "%.127s",
                   job->nccl.path);
    nccl_env_notes("\n", notes, sizeof(notes));
    nccl_env_common(self->settings, sizeof(self->settings));
    nccl_env_interface(self->interface, sizeof(self->interface));
    detected_explain(&job->detected, "%s", notes);
    note_isolation(job);
    return nccl_env_check_interface(error);
}

/* A GPU, else gloo, else say what to install. */
static int auto_prepare(struct flaunch *job, struct checkin_record *self,
                        struct flaunch_error *error)
{
    if (job->cuda.device != DEVICE_CPU) {
        job->backend = BACKEND_NCCL;
        detected_explain(&job->detected, "auto: nccl, on cuda:%d\n",
                         job->cuda.device);
        return nccl_prepare(job, self, error);
    }
    (void)snprintf(self->no_gpu, sizeof(self->no_gpu), "%.159s",
                   job->cuda.why_none);
    job->backend = BACKEND_GLOO;
    detected_explain(&job->detected, "auto: gloo, since there is no GPU: %s\n",
                     job->cuda.why_none);
    if (gloo_group_load(&job->gloo, NULL) < 0) {
        return fail_set(error, FLAUNCH_GLOO, -ENOENT,
                        "neither a GPU nor gloo is to be had here: install "
                        "gloo (libgloo-dev) and build flaunch again; no GPU: "
                        "%.200s",
                        job->cuda.why_none);
    }
    return 0;
}

/* gloo computes on the host: a GPU that cannot be used does not matter. */
static int gloo_prepare(struct flaunch *job, int device_rc,
                        struct flaunch_error *error)
{
    if (device_rc < 0) {
        detected_explain(&job->detected, "device: cpu, since %s\n",
                         error->text);
        job->cuda.device = DEVICE_CPU;
        *error = (struct flaunch_error){ 0 };
    }
    return gloo_group_load(&job->gloo, error);
}

int backend_prepare(struct flaunch *job, const struct flaunch_options *options,
                    struct checkin_record *self, struct flaunch_error *error)
{
    int rc = device_prepare(job, options, self, error);

    if (job->backend == BACKEND_GLOO) {
        rc = gloo_prepare(job, rc, error);
    } else if (rc == 0 && job->backend == BACKEND_NCCL) {
        rc = nccl_prepare(job, self, error);
    } else if (rc == 0 && job->backend == BACKEND_AUTO) {
        rc = auto_prepare(job, self, error);
    }
    (void)snprintf(self->backend, sizeof(self->backend), "%s",
                   backend_name(job->backend));
    return rc;
}

int backend_open(struct flaunch *job, const struct checkin_record *self,
                 struct flaunch_error *error)
{
    char prefix[80];
    struct nccl_group_request request = {
        .rank = job->detected.rank,
        .world_size = job->detected.world_size,
        .host = self->host,
        .client = job->store.open ? &job->store.client : NULL,
        .prefix = prefix,
        .deadline_ms = job->deadline_ms,
    };

    (void)snprintf(prefix, sizeof(prefix), "flaunch/%s/%s",
                   backend_name(job->backend), job->nonce);
    if (job->backend == BACKEND_NCCL) {
        return nccl_group_open(&job->nccl, &request, error);
    }
    if (job->backend != BACKEND_GLOO || !job->store.open) {
        return 0; /* a rank alone has nobody to connect to */
    }
    return gloo_group_open(&job->gloo, job->detected.rank,
                           job->detected.world_size, &job->store.client,
                           self->reached, prefix, job->deadline_ms, error);
}

void backend_close(struct flaunch *job)
{
    gloo_group_close(&job->gloo);
    nccl_group_close(&job->nccl);
}
