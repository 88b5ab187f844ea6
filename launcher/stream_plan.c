#include "launcher/stream_plan.h"

#include "launcher/lines.h"
#include "launcher/log_prefix.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const file_names[2] = { "stdout.log", "stderr.log" };
static const char *const filter_names[2] = { "filtered_stdout.log",
                                             "filtered_stderr.log" };
static const uint8_t bits[2] = { LOG_OUT, LOG_ERR };

void stream_plan_destroy(struct stream_plan *plan)
{
    size_t i;

    for (i = 0; i < 2 * (size_t)plan->n_workers; i++) {
        free(plan->paths != NULL ? plan->paths[i] : NULL);
        free(plan->headers != NULL ? plan->headers[i] : NULL);
    }
    free(plan->paths);
    free(plan->headers);
    free(plan->streams);
    free(plan->filter_paths[GUARD_OUT]);
    free(plan->filter_paths[GUARD_ERR]);
    *plan = (struct stream_plan){ 0 };
}

/* The text before each line of a stream, or none. */
static int plan_header(struct stream_plan *plan, uint32_t worker, int number,
                       const struct stream_job *job)
{
    const struct log_config *config = plan->config;
    bool teed =
        (config->choices[worker].tee & bits[number]) != 0 && !config->no_files;
    const char *pattern = config->prefix;
    struct log_prefix_values values = { .role_name = job->role,
                                        .rank = job->base_rank + worker,
                                        .local_rank = worker };
    char host[256] = "";
    char text[LINES_HEADER_MAX / 2];

    if (pattern == NULL && teed) {
        pattern = config->tee_prefix;
    }
    if (pattern == NULL || pattern[0] == '\0') {
        return 0;
    }
    (void)gethostname(host, sizeof(host) - 1);
    values.host = host;
    (void)log_prefix_fill(pattern, &values, text, sizeof(text));
    plan->headers[2 * (size_t)worker + (size_t)number] = strdup(text);
    return plan->headers[2 * (size_t)worker + (size_t)number] != NULL ? 0
                                                                      : -ENOMEM;
}

static int plan_file(struct stream_plan *plan, uint32_t worker, int number,
                     const struct log_dir *dir, struct err *err)
{
    char *path = log_dir_path(dir, worker, file_names[number]);

    plan->paths[2 * (size_t)worker + (size_t)number] = path;
    plan->streams[worker][number].path = path != NULL ? path : "";
    return path != NULL ? log_dir_file(path, err)
                        : err_sys(err, -ENOMEM, "cannot name a log");
}

static int plan_worker(struct stream_plan *plan, uint32_t worker,
                       const struct stream_job *job, const struct log_dir *dir,
                       struct err *err)
{
    struct log_choice choice = plan->config->choices[worker];
    int rc = 0;
    int i;

    if (plan->config->no_files) {
        choice.redirect = 0;
        choice.tee = 0;
    }
    log_spec_streams(&choice, &plan->config->screen, plan->n_workers,
                     plan->streams[worker]);
    for (i = 0; i < 2 && rc == 0; i++) {
        rc = plan_header(plan, worker, i, job);
        if (rc < 0) {
            return err_sys(err, rc, "cannot plan the workers' output");
        }
        if (plan->streams[worker][i].kind == GUARD_STREAM_FILE) {
            rc = plan_file(plan, worker, i, dir, err);
        }
    }
    return rc;
}

static int plan_filters(struct stream_plan *plan, const struct log_dir *dir,
                        struct err *err)
{
    int rc = 0;
    int i;

    for (i = 0; i < 2 && rc == 0; i++) {
        if (plan->config->filters[i] == NULL || dir->run == NULL) {
            continue;
        }
        if (asprintf(&plan->filter_paths[i], "%s/%s", dir->attempt,
                     filter_names[i]) < 0) {
            plan->filter_paths[i] = NULL;
            return err_sys(err, -ENOMEM, "cannot name a log");
        }
        rc = log_dir_file(plan->filter_paths[i], err);
    }
    return rc;
}

int stream_plan_make(const struct log_config *config, uint32_t n_workers,
                     const struct stream_job *job, struct log_dir *dir,
                     struct stream_plan *plan_out, struct err *err)
{
    struct stream_plan plan = {
        .n_workers = n_workers,
        .streams = calloc(n_workers, sizeof(*plan.streams)),
        .paths = calloc(2 * (size_t)n_workers, sizeof(char *)),
        .headers = calloc(2 * (size_t)n_workers, sizeof(char *)),
        .config = config,
    };
    uint32_t i;
    int rc = 0;

    if (plan.streams == NULL || plan.paths == NULL || plan.headers == NULL) {
        stream_plan_destroy(&plan);
        return err_sys(err, -ENOMEM, "cannot plan the workers' output");
    }
    if (dir->run != NULL) {
        rc = log_dir_attempt(dir, job->attempt, n_workers, err);
    }
    for (i = 0; i < n_workers && rc == 0; i++) {
        rc = plan_worker(&plan, i, job, dir, err);
    }
    if (rc == 0) {
        rc = plan_filters(&plan, dir, err);
    }
    if (rc < 0) {
        stream_plan_destroy(&plan);
        return rc;
    }
    *plan_out = plan;
    return 0;
}
