#include "worker/flaunch.h"

#include "common/clock.h"
#include "common/env_names.h"
#include "common/io.h"
#include "common/parse.h"
#include "common/version.h"
#include "worker/ancestors.h"
#include "worker/backend.h"
#include "worker/checkin.h"
#include "worker/fail.h"
#include "worker/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INIT_TIMEOUT_MS 300000
/* How long rank 0 waits for those who were told a bad verdict. */
#define FAREWELL_MS 3000

static const char *env_get(const char *name, void *arg)
{
    (void)arg;
    return getenv(name);
}

static bool fd_is_socket(int fd, void *arg)
{
    struct stat status;

    (void)arg;
    return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
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

static void self_describe(const struct flaunch *job,
                          struct checkin_record *self)
{
    self->rank = (uint32_t)job->detected.rank;
    self->world_size = (uint32_t)job->detected.world_size;
    self->local_rank = (uint32_t)job->detected.local_rank;
    self->local_world_size = (uint32_t)job->detected.local_world_size;
    self->local_rank_assumed = job->detected.launcher == LAUNCHER_ENV &&
                               getenv(ENV_LOCAL_RANK) == NULL;
    self->pid = (uint32_t)getpid();
    if (gethostname(self->host, sizeof(self->host) - 1) < 0) {
        (void)snprintf(self->host, sizeof(self->host), "(unknown host)");
    }
    (void)io_read_text("/proc/sys/kernel/random/boot_id", self->machine,
                       sizeof(self->machine));
    self->machine[strcspn(self->machine, "\n")] = '\0';
    if (job->store.open) {
        store_client_peer(&job->store.client, self->reached,
                          sizeof(self->reached));
    }
}

/* Compare notes with the others; what went wrong here so far goes to all of
 * them. */
static int compare_notes(struct flaunch *job, struct checkin_record *self,
                         int own_rc, struct flaunch_error *error)
{
    char warning[VERDICT_MAX];
    uint32_t n_told = 0;
    int rc;

    if (own_rc < 0) {
        (void)snprintf(self->error, sizeof(self->error), "%.511s", error->text);
    }
    if (!job->store.open) {
        return own_rc; /* a job of one has nobody to tell */
    }
    rc = checkin(&job->store.client, self, job->deadline_ms, &n_told, warning,
                 error);
    detected_explain(&job->detected, "%s", warning);
    (void)snprintf(job->nonce, sizeof(job->nonce), "%s", self->nonce);
    if (rc < 0 && job->nonce[0] != '\0') {
        /* Those who were told must have read it before the store ends. */
        (void)job_store_leave(&job->store, false, n_told,
                              clock_deadline(FAREWELL_MS), NULL);
    }
    return rc;
}

/* As open_flamingo does, so that code which reads them works. */
static void export_place(const struct detected *detected)
{
    const struct {
        const char *name;
        int value;
    } places[] = {
        { ENV_RANK, detected->rank },
        { ENV_WORLD_SIZE, detected->world_size },
        { ENV_LOCAL_RANK, detected->local_rank },
        { ENV_LOCAL_WORLD_SIZE, detected->local_world_size },
    };
    char text[16];
    size_t i;

    switch (detected->launcher) {
    case LAUNCHER_NONE:
    case LAUNCHER_FLAUNCH:
    case LAUNCHER_TORCHRUN:
    case LAUNCHER_ENV:
        return;
    default:
        break;
    }
    for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        (void)snprintf(text, sizeof(text), "%d", places[i].value);
        (void)setenv(places[i].name, text, 1);
    }
}

/* What has been found since the last time, where FLAUNCH_DEBUG asks. */
static void say_explanation(struct flaunch *job)
{
    const char *text = job->detected.explanation;

    if (debug_asked("env") && text[job->n_said] != '\0') {
        (void)fprintf(stderr, "libflaunch: %s", text + job->n_said);
        job->n_said = strlen(text);
    }
}

static int find_place(struct flaunch *job,
                      const struct flaunch_options *options,
                      struct flaunch_error *error)
{
    const struct environ_view view = { env_get, fd_is_socket, NULL };
    const struct detect_wish wish = { options->launcher, options->dist_url,
                                      options->horovod != 0 };
    struct detected *detected = &job->detected;
    char ancestors[256];
    int rc = detect(&view, &wish, detected, error);

    ancestors_list(ancestors, sizeof(ancestors));
    detected_explain(detected, "descends from %s\n", ancestors);
    say_explanation(job);
    if (rc == 0) {
        rc = job_store_open(&job->store, detected, job->deadline_ms, error);
    }
    if (rc == 0 && detected->local_rank < 0) {
        rc = fail_set(error, FLAUNCH_ENVIRONMENT, -EINVAL,
                      "launcher %s did not tell this rank's local rank",
                      launcher_name(detected->launcher));
    }
    if (rc == 0 && detected->local_world_size == 0) {
        detected->local_world_size = detected->local_rank + 1;
        detected_explain(detected, "local world size: not told, at least %d\n",
                         detected->local_world_size);
    }
    return rc;
}

static int job_open(struct flaunch *job, const struct flaunch_options *options,
                    struct flaunch_error *error)
{
    struct checkin_record self = { 0 };
    int leave_rc;
    int rc;

    rc = backend_read(options->dist_backend, &job->backend, error);
    if (rc == 0) {
        rc = deadline_read(options->timeout_ms, &job->deadline_ms, error);
    }
    if (rc == 0) {
        rc = find_place(job, options, error);
    }
    if (rc < 0) {
        return rc;
    }
    self_describe(job, &self);
    rc = backend_prepare(job, options, &self, error);
    rc = compare_notes(job, &self, rc, error);
    if (rc == 0) {
        rc = backend_open(job, &self, error);
        if (job->store.open) {
            detected_explain(&job->detected, "store: %u requests so far\n",
                             job->store.client.n_requests);
        }
        leave_rc = job_store_leave(
            &job->store, true, (uint32_t)job->detected.world_size - 1,
            rc == 0 ? job->deadline_ms : clock_deadline(FAREWELL_MS),
            rc == 0 ? error : NULL);
        rc = rc == 0 ? leave_rc : rc;
    }
    if (rc == 0) {
        export_place(&job->detected);
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
    job->pid = getpid();
    job->check_shapes = debug_asked("detail");
    job->cuda.device = DEVICE_CPU;
    job->store.client.fd = -1;
    rc = job_open(job, &read, error);
    say_explanation(job);
    if (rc < 0) {
        flaunch_finalize(job);
        return rc;
    }
    if (job->cuda.device == DEVICE_CPU) {
        (void)snprintf(job->device_text, sizeof(job->device_text), "cpu");
    } else {
        (void)snprintf(job->device_text, sizeof(job->device_text), "cuda:%d",
                       job->cuda.device);
    }
    *job_out = job;
    return 0;
}

void flaunch_finalize(struct flaunch *job)
{
    if (job == NULL) {
        return;
    }
    if (job->pid == getpid()) { /* a forked child leaves all to its parent */
        backend_close(job);
        job_store_close(&job->store);
    }
    free(job);
}

int job_check_pid(const struct flaunch *job, struct flaunch_error *error)
{
    return job->pid == getpid()
               ? 0
               : fail_set(error, FLAUNCH_USAGE, -EINVAL,
                          "this process was forked from the one that called "
                          "flaunch_init: it is no rank of the job");
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
    return job->cuda.device;
}

const char *flaunch_backend(const struct flaunch *job)
{
    return backend_name(job->backend);
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
