#include "launcher/worker_env.h"

#include "common/env_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Records of outer launchers: a worker that found one would believe itself
 * rank 3 of somebody else's job, or talk to a dead PMI socket. A name that
 * ends in * stands for all that begin so.
 */
static const char *const outer_records[] = {
    "PMI_*",           "PMIX_*",          "PRTE_*",         "OMPI_COMM_WORLD_*",
    "OMPI_MCA_orte_*", "OMPI_MCA_ess*",   "MPI_LOCAL*",     "MV2_COMM_WORLD_*",
    "HYDI_CONTROL_FD", "JSM_NAMESPACE_*", "PALS_*",         "FLUX_TASK_*",
    "SLURM_PROCID",    "SLURM_LOCALID",   "SLURM_NODEID",   "SLURM_NTASKS",
    "SLURM_NPROCS",    "SLURM_STEP_*",    "SLURM_GTIDS",    "SLURM_TASK_PID",
    ENV_RUN_ID,        ENV_RESTART_COUNT, ENV_MAX_RESTARTS, ENV_USE_AGENT_STORE,
};

/* Never given on, whatever --keep-env says: they are options of ours, or
 * would be a second value beside the one that we set. */
static const char *const ours[] = {
    "FLAUNCH_OPT_*",
    "PET_*",
    ENV_RANK,
    ENV_WORLD_SIZE,
    ENV_LOCAL_RANK,
    ENV_LOCAL_WORLD_SIZE,
    ENV_GROUP_RANK,
    ENV_GROUP_WORLD_SIZE,
    ENV_ROLE_NAME,
    ENV_ROLE_RANK,
    ENV_ROLE_WORLD_SIZE,
    ENV_MASTER_ADDR,
    ENV_MASTER_PORT,
    ENV_RESTART_COUNT,
    ENV_MAX_RESTARTS,
    ENV_RUN_ID,
    ENV_USE_AGENT_STORE,
    ENV_SIGNALS_TO_HANDLE,
    ENV_ERROR_FILE,
    ENV_FLAUNCH_RUN_ID,
    ENV_FLAUNCH_RANK,
    ENV_FLAUNCH_WORLD_SIZE,
    ENV_FLAUNCH_LOCAL_RANK,
    ENV_FLAUNCH_LOCAL_WORLD_SIZE,
    ENV_FLAUNCH_NODE_RANK,
    ENV_FLAUNCH_NNODES,
    ENV_FLAUNCH_ATTEMPT,
    ENV_FLAUNCH_STORE,
};

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

static bool matches(const char *const *patterns, size_t n, const char *name,
                    size_t len)
{
    size_t i;

    for (i = 0; i < n; i++) {
        size_t pattern_len = strlen(patterns[i]);
        bool open_end = patterns[i][pattern_len - 1] == '*';

        pattern_len -= open_end;
        if (len >= pattern_len && (open_end || len == pattern_len) &&
            memcmp(patterns[i], name, pattern_len) == 0) {
            return true;
        }
    }
    return false;
}

bool worker_env_is_scrubbed(const char *name, size_t len)
{
    return matches(outer_records, N_OF(outer_records), name, len) ||
           matches(ours, N_OF(ours), name, len);
}

void env_list_destroy(struct env_list *list)
{
    size_t i;

    for (i = 0; i < list->n; i++) {
        free(list->strings[i]);
    }
    free(list->strings);
    *list = (struct env_list){ 0 };
}

/* Take over a string; 0 or -ENOMEM, and then it is freed. */
static int list_push(struct env_list *list, char *string)
{
    if (string == NULL) {
        return -ENOMEM;
    }
    if (list->n + 1 >= list->cap) {
        size_t cap = list->cap != 0 ? list->cap * 2 : 32;
        char **strings = realloc(list->strings, cap * sizeof(*strings));

        if (strings == NULL) {
            free(string);
            return -ENOMEM;
        }
        list->strings = strings;
        list->cap = cap;
    }
    list->strings[list->n++] = string;
    list->strings[list->n] = NULL;
    return 0;
}

static int push_text(struct env_list *list, const char *name, const char *value)
{
    char *string;

    if (asprintf(&string, "%s=%s", name, value) < 0) {
        return -ENOMEM;
    }
    return list_push(list, string);
}

static int push_number(struct env_list *list, const char *name, uint32_t value)
{
    char text[16];

    (void)snprintf(text, sizeof(text), "%u", value);
    return push_text(list, name, text);
}

static const char *find(char *const *env, const char *name)
{
    size_t len = strlen(name);

    for (; *env != NULL; env++) {
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=') {
            return *env + len + 1;
        }
    }
    return NULL;
}

static bool is_name(const char *name, size_t len, const char *known)
{
    return len == strlen(known) && memcmp(name, known, len) == 0;
}

static int push_inherited(struct env_list *list, char *const *inherited,
                          const struct job_env *job)
{
    int rc = 0;

    for (; *inherited != NULL && rc == 0; inherited++) {
        size_t len = strcspn(*inherited, "=");

        if (matches(ours, N_OF(ours), *inherited, len) ||
            (job->own_gpus &&
             is_name(*inherited, len, ENV_CUDA_VISIBLE_DEVICES)) ||
            (job->timer_file != NULL &&
             is_name(*inherited, len, ENV_TIMER_FILE)) ||
            (!job->keep_env &&
             matches(outer_records, N_OF(outer_records), *inherited, len))) {
            continue;
        }
        rc = list_push(list, strdup(*inherited));
    }
    return rc;
}

/* The first error stays; used to chain pushes without a jump for each. */
#define THEN(rc, call) ((rc) == 0 ? (call) : (rc))

int worker_env_shared(char *const *inherited, const struct job_env *job,
                      struct env_list *list_out)
{
    struct env_list list = { 0 };
    char store[300];
    char port[8];
    int rc;

    (void)snprintf(port, sizeof(port), "%u", job->master_port);
    (void)snprintf(store, sizeof(store),
                   strchr(job->master_addr, ':') != NULL ? "[%s]:%s" : "%s:%s",
                   job->master_addr, port);
    rc = push_inherited(&list, inherited, job);
    rc = THEN(rc, push_text(&list, ENV_MASTER_ADDR, job->master_addr));
    rc = THEN(rc, push_text(&list, ENV_MASTER_PORT, port));
    rc = THEN(rc, push_text(&list, ENV_ROLE_NAME, job->role));
    rc = THEN(rc, push_number(&list, ENV_RESTART_COUNT, job->attempt));
    rc = THEN(rc, push_number(&list, ENV_MAX_RESTARTS, job->max_restarts));
    rc = THEN(rc, push_text(&list, ENV_RUN_ID, job->run_id));
    rc = THEN(rc, push_text(&list, ENV_USE_AGENT_STORE, "True"));
    rc = THEN(rc, push_text(&list, ENV_SIGNALS_TO_HANDLE, job->signals));
    rc = THEN(rc, push_text(&list, ENV_FLAUNCH_RUN_ID, job->run_id));
    rc = THEN(rc, push_number(&list, ENV_FLAUNCH_ATTEMPT, job->round - 1));
    rc = THEN(rc, push_text(&list, ENV_FLAUNCH_STORE, store));
    if (job->timer_file != NULL) {
        rc = THEN(rc, push_text(&list, ENV_TIMER_FILE, job->timer_file));
    }
    if (find(inherited, ENV_NCCL_ASYNC) == NULL) {
        rc = THEN(rc, push_text(&list, ENV_NCCL_ASYNC, "1"));
    }
    if (find(inherited, ENV_PYTHONUNBUFFERED) == NULL) {
        rc = THEN(rc, push_text(&list, ENV_PYTHONUNBUFFERED, "1"));
    }
    if (job->omp_num_threads > 0) {
        rc = THEN(
            rc, push_number(&list, ENV_OMP_NUM_THREADS, job->omp_num_threads));
    }
    if (rc < 0) {
        env_list_destroy(&list);
        return rc;
    }
    *list_out = list;
    return 0;
}

int worker_env_own(const struct place *place, const char *error_file,
                   const char *gpu, struct env_list *list_out)
{
    const struct {
        const char *name;
        uint32_t value;
    } numbers[] = {
        { ENV_RANK, place->rank },
        { ENV_WORLD_SIZE, place->world_size },
        { ENV_LOCAL_RANK, gpu != NULL ? 0 : place->local_rank },
        { ENV_LOCAL_WORLD_SIZE, place->local_world_size },
        { ENV_GROUP_RANK, place->group_rank },
        { ENV_GROUP_WORLD_SIZE, place->group_world_size },
        { ENV_ROLE_RANK, place->role_rank },
        { ENV_ROLE_WORLD_SIZE, place->role_world_size },
        { ENV_FLAUNCH_RANK, place->rank },
        { ENV_FLAUNCH_WORLD_SIZE, place->world_size },
        { ENV_FLAUNCH_LOCAL_RANK, place->local_rank },
        { ENV_FLAUNCH_LOCAL_WORLD_SIZE, place->local_world_size },
        { ENV_FLAUNCH_NODE_RANK, place->group_rank },
        { ENV_FLAUNCH_NNODES, place->group_world_size },
    };
    struct env_list list = { 0 };
    int rc = 0;
    size_t i;

    for (i = 0; i < N_OF(numbers) && rc == 0; i++) {
        rc = push_number(&list, numbers[i].name, numbers[i].value);
    }
    if (error_file != NULL) {
        rc = THEN(rc, push_text(&list, ENV_ERROR_FILE, error_file));
    }
    if (gpu != NULL) {
        rc = THEN(rc, push_text(&list, ENV_CUDA_VISIBLE_DEVICES, gpu));
    }
    if (rc < 0) {
        env_list_destroy(&list);
        return rc;
    }
    *list_out = list;
    return 0;
}
