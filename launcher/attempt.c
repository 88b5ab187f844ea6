#include "launcher/attempt.h"

#include "launcher/guard_pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * A terminal whose foreground is somebody else's is nobody's standard input:
 * a worker that read it would be stopped, and with it the job.
 */
static uint32_t stdin_worker(const struct config *config,
                             const struct node_place *place)
{
    pid_t foreground = tcgetpgrp(STDIN_FILENO);

    if (isatty(STDIN_FILENO) && foreground != getpgrp()) {
        return GUARD_STDIN_NONE;
    }
    if (config->stdin_rank == GUARD_STDIN_NONE ||
        config->stdin_rank == GUARD_STDIN_ALL) {
        return config->stdin_rank;
    }
    return config->stdin_rank >= place->base_rank &&
                   config->stdin_rank - place->base_rank < place->n_workers
               ? config->stdin_rank - place->base_rank
               : GUARD_STDIN_NONE;
}

/* Where a worker says why it failed; NULL: nowhere, or no memory. */
static char *error_file(const struct run_files *files, uint32_t round,
                        uint32_t worker)
{
    char *path;

    if (files->log.run != NULL) {
        return log_dir_path(&files->log, worker, "error.json");
    }
    if (files->run_dir == NULL ||
        asprintf(&path, "%s/%u.%u.json", files->run_dir, round, worker) < 0) {
        return NULL;
    }
    return path;
}

/* What differs from worker to worker: its part of the environment, and, where
 * ${local_rank} is to be filled in, its arguments. */
struct own {
    struct env_list *envs;
    char ***env_strings;
    char ***argvs;
};

static void own_destroy(struct own *own, uint32_t n_workers)
{
    uint32_t i;

    for (i = 0; i < n_workers; i++) {
        if (own->envs != NULL) {
            env_list_destroy(&own->envs[i]);
        }
        if (own->argvs != NULL) {
            command_free_expanded(own->argvs[i]);
        }
    }
    free(own->envs);
    free(own->env_strings);
    free(own->argvs);
}

/* 0 or -ENOMEM; destroyed by the caller in any case. */
static int own_make(const struct attempt *attempt, const struct config *config,
                    struct own *own)
{
    uint32_t n = config->n_workers;
    uint32_t i;
    int rc = 0;

    own->envs = calloc(n, sizeof(*own->envs));
    own->env_strings = calloc(n, sizeof(*own->env_strings));
    own->argvs = config->macros ? calloc(n, sizeof(*own->argvs)) : NULL;
    if (own->envs == NULL || own->env_strings == NULL ||
        (config->macros && own->argvs == NULL)) {
        return -ENOMEM;
    }
    for (i = 0; i < n && rc == 0; i++) {
        struct place place = ranks_place(&attempt->place, i);

        rc = worker_env_own(&place, attempt->error_files[i],
                            config->gpus != NULL ? config->gpus[i] : NULL,
                            &own->envs[i]);
        own->env_strings[i] = own->envs[i].strings;
        if (rc == 0 && config->macros) {
            own->argvs[i] = command_expand(&config->command, i);
            rc = own->argvs[i] != NULL ? 0 : -ENOMEM;
        }
    }
    return rc;
}

/* Environments and arguments of all workers, handed to the guard. */
static int send_plan(const struct attempt *attempt, const struct config *config,
                     const struct job_env *job, int guard_fd)
{
    char **same = config->command.argv;
    struct env_list shared = { 0 };
    struct own own = { 0 };
    struct guard_plan plan = { .stdin_worker =
                                   stdin_worker(config, &attempt->place),
                               .path = config->command.path,
                               .keep = config->keep_processes,
                               .argvs = &same,
                               .n_argvs = 1,
                               .n_workers = config->n_workers,
                               .streams = attempt->plan.streams,
                               .cpus = config->binding.masks,
                               .cpu_bytes = config->binding.bytes };
    int rc = own_make(attempt, config, &own);

    if (rc == 0) {
        rc = worker_env_shared(environ, job, &shared);
    }
    if (rc == 0) {
        if (config->macros) {
            plan.argvs = own.argvs;
            plan.n_argvs = config->n_workers;
        }
        plan.worker_env = own.env_strings;
        plan.base_env = shared.strings;
        plan.n_base_env = shared.n;
        rc = guard_pair_send_plan(guard_fd, &plan);
    }
    own_destroy(&own, config->n_workers);
    env_list_destroy(&shared);
    return rc;
}

/* Everything an attempt's workers need before they start. */
static int prepare(struct attempt *attempt, const struct config *config,
                   const struct job_env *job, struct run_files *files,
                   struct err *err)
{
    const struct stream_job stream_job = {
        .attempt = job->attempt,
        .base_rank = attempt->place.base_rank,
        .role = job->role,
    };
    uint32_t i;
    int rc = worker_group_init(&attempt->group, config->n_workers);

    attempt->group.base_rank = attempt->place.base_rank;
    attempt->error_files =
        calloc(config->n_workers, sizeof(*attempt->error_files));
    if (rc < 0 || attempt->error_files == NULL) {
        return err_sys(err, -ENOMEM, "cannot start the workers");
    }
    rc = stream_plan_make(&config->log, config->n_workers, &stream_job,
                          &files->log, &attempt->plan, err);
    for (i = 0; i < config->n_workers && rc == 0; i++) {
        attempt->error_files[i] = error_file(files, job->round, i);
    }
    return rc;
}

int attempt_send_workers(struct attempt *attempt, const struct config *config,
                         const struct job_env *job,
                         const struct node_place *place,
                         struct run_files *files, int guard_fd, struct err *err)
{
    int rc;

    attempt->place = *place;
    rc = prepare(attempt, config, job, files, err);
    if (rc == 0) {
        rc = send_plan(attempt, config, job, guard_fd);
        if (rc < 0) {
            (void)err_sys(err, rc, "cannot start the workers");
        }
    }
    return rc;
}

void attempt_end(struct attempt *attempt)
{
    uint32_t i;

    for (i = 0; i < attempt->plan.n_workers; i++) {
        free(attempt->error_files[i]);
    }
    free(attempt->error_files);
    stream_plan_destroy(&attempt->plan);
    worker_group_destroy(&attempt->group);
    *attempt = (struct attempt){ 0 };
}
