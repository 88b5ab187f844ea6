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

/* Environments and arguments of all workers, handed to the guard. */
static int send_plan(const struct attempt *attempt, const struct config *config,
                     const struct job_env *job, int guard_fd)
{
    struct env_list *own = calloc(config->n_workers, sizeof(*own));
    char ***own_strings = calloc(config->n_workers, sizeof(*own_strings));
    struct env_list shared = { 0 };
    struct guard_plan plan = { .stdin_worker =
                                   stdin_worker(config, &attempt->place),
                               .path = config->command.path,
                               .keep = config->keep_processes,
                               .argv = config->command.argv,
                               .n_workers = config->n_workers,
                               .worker_env = own_strings,
                               .streams = attempt->plan.streams };
    uint32_t i;
    int rc;

    rc = own != NULL && own_strings != NULL ? 0 : -ENOMEM;
    if (rc == 0) {
        rc = worker_env_shared(environ, job, &shared);
    }
    for (i = 0; i < config->n_workers && rc == 0; i++) {
        struct place place = ranks_place(&attempt->place, i);

        rc = worker_env_own(&place, attempt->error_files[i], &own[i]);
        own_strings[i] = own[i].strings;
    }
    if (rc == 0) {
        plan.base_env = shared.strings;
        plan.n_base_env = shared.n;
        rc = guard_pair_send_plan(guard_fd, &plan);
    }
    for (i = 0; i < config->n_workers && own != NULL; i++) {
        env_list_destroy(&own[i]);
    }
    env_list_destroy(&shared);
    free(own_strings);
    free(own);
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
