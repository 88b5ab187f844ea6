#include "launcher/events.h"

#include "launcher/json_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What torchrun says where a worker left no error file. */
#define NO_ERROR                                                               \
    "{\"message\": \"<NONE>\", \"errorTraits\": {\"category\": "               \
    "\"system_terminated_error\", \"retryability\": \"False\"}}"

static json_t *number_or_null(bool known, json_int_t number)
{
    return known ? json_integer(number) : json_null();
}

/* The metadata of the metadata, which is a text. */
static char *inner_print(const struct event_job *job,
                         const struct event_worker *worker)
{
    json_t *inner =
        json_pack("{s:o, s:o}", "group_world_size",
                  number_or_null(job->placed, job->group_world_size),
                  "entry_point", json_text(job->entry_point));
    char *text = NULL;

    if (inner != NULL && worker != NULL &&
        json_object_update_new(
            inner,
            json_pack("{s:[I], s:[I], s:[I], s:[o], s:[o]}", "local_rank",
                      (json_int_t)worker->place.local_rank, "role_rank",
                      (json_int_t)worker->place.role_rank, "role_world_size",
                      (json_int_t)worker->place.role_world_size, "exit_code",
                      number_or_null(worker->failed, worker->exit_code),
                      "worker_pid",
                      number_or_null(worker->failed, worker->pid))) < 0) {
        json_decref(inner);
        return NULL;
    }
    if (inner != NULL) {
        text = json_dumps(inner, JSON_ENSURE_ASCII);
        json_decref(inner);
    }
    return text;
}

/* Why it failed, as a text; NULL: null, or no memory. */
static char *raw_error_print(const struct event *event)
{
    if (event->worker == NULL) {
        return event->error != NULL ? strdup(event->error) : NULL;
    }
    if (!event->worker->failed) {
        return NULL;
    }
    return event->worker->error != NULL
               ? json_dumps(event->worker->error, JSON_ENSURE_ASCII)
               : strdup(NO_ERROR);
}

static json_t *metadata_make(const struct event_job *job,
                             const struct event *event, const char *inner,
                             const char *raw_error)
{
    const struct event_worker *worker = event->worker;
    char pid[16] = "";

    if (worker != NULL) {
        (void)snprintf(pid, sizeof(pid), "%u", worker->pid);
    }
    return json_pack(
        "{s:o, s:o, s:o, s:s?, s:o, s:o, s:s, s:I, s:s, s:o, s:s, s:I, s:o}",
        "run_id", json_text(job->run_id), "global_rank",
        number_or_null(worker != NULL, worker != NULL ? worker->place.rank : 0),
        "group_rank", number_or_null(job->placed, job->group_rank), "worker_id",
        worker != NULL ? pid : NULL, "role", json_text(job->role), "hostname",
        json_text(job->hostname), "state", event->state, "total_run_time",
        (json_int_t)job->seconds, "rdzv_backend", job->backend, "raw_error",
        raw_error != NULL ? json_text(raw_error) : json_null(), "metadata",
        inner, "agent_restarts", (json_int_t)job->restarts, "duration_ms",
        event->duration_ms >= 0 ? json_real(event->duration_ms) : json_null());
}

int event_print(const struct event_job *job, const struct event *event,
                struct buf *out)
{
    char *inner = inner_print(job, event->worker);
    char *raw_error = raw_error_print(event);
    char name[64];
    json_t *line = NULL;
    char *text = NULL;
    int rc = -ENOMEM;

    (void)snprintf(name, sizeof(name), "torchelastic.worker.status.%s",
                   event->state);
    if (inner != NULL) {
        line = json_pack("{s:s, s:s, s:I, s:o}", "name", name, "source",
                         event->worker != NULL ? "WORKER" : "AGENT",
                         "timestamp", (json_int_t)time(NULL), "metadata",
                         metadata_make(job, event, inner, raw_error));
    }
    if (line != NULL) {
        text = json_dumps(line, JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15));
    }
    if (text != NULL) {
        rc = buf_append(out, text, strlen(text));
    }
    if (rc == 0) {
        rc = buf_append_u8(out, '\n');
    }
    json_decref(line);
    free(text);
    free(inner);
    free(raw_error);
    return rc;
}
