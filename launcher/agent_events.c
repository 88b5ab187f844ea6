#include "launcher/agent_events.h"

#include "common/clock.h"
#include "common/log.h"
#include "launcher/error_report.h"
#include "launcher/exit_status.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void agent_events_begin(struct agent_events *events,
                        const struct config *config)
{
    events->config = config->events ? config : NULL;
    events->begin_ns = clock_ns();
    events->waiting_ns = events->begin_ns;
    (void)gethostname(events->hostname, sizeof(events->hostname) - 1);
}

void agent_events_wait(struct agent_events *events)
{
    events->waiting_ns = clock_ns();
}

static void tell(const struct agent_events *events, const struct job_env *job,
                 const struct event *event)
{
    const char *path = events->config->command.path;
    const char *slash = strrchr(path, '/');
    const struct event_job event_job = {
        .run_id = job->run_id,
        .role = job->role,
        .hostname = events->hostname,
        .backend = events->config->nodes.backend,
        .entry_point = slash != NULL ? slash + 1 : path,
        .placed = events->placed,
        .group_rank = events->place.group_rank,
        .group_world_size = events->place.n_nodes,
        .restarts = job->attempt,
        .seconds = (clock_ns() - events->begin_ns) / 1000000000,
    };
    struct buf text = { 0 };

    if (event_print(&event_job, event, &text) == 0) {
        log_text((const char *)text.data, text.len);
    } else {
        log_line(LOG_WARN, "an event (%s) cannot be told as JSON",
                 event->state);
    }
    buf_destroy(&text);
}

static void tell_agent(const struct agent_events *events,
                       const struct job_env *job, const char *state,
                       double duration_ms, const char *why)
{
    const struct event event = { .state = state,
                                 .duration_ms = duration_ms,
                                 .error = why };

    tell(events, job, &event);
}

static void tell_worker(const struct agent_events *events,
                        const struct job_env *job, const char *state,
                        const struct event_worker *worker)
{
    const struct event event = { .state = state,
                                 .worker = worker,
                                 .duration_ms = -1 };

    tell(events, job, &event);
}

void agent_events_round(struct agent_events *events, const struct job_env *job,
                        const struct node_place *place)
{
    if (events->config != NULL) {
        /* Places come with the round's agreement, and are told apart only
         * because torchrun does. */
        tell_agent(events, job, "RENDEZVOUS",
                   (double)(clock_ns() - events->waiting_ns) / 1e6, NULL);
        tell_agent(events, job, "ASSIGN_WORKER_RANKS", 0, NULL);
    }
    events->placed = true;
    events->place = *place;
}

static struct event_worker worker_of(const struct attempt *attempt,
                                     uint32_t worker)
{
    return (struct event_worker){
        .place = ranks_place(&attempt->place, worker),
        .pid = attempt->group.workers[worker].pid,
    };
}

void agent_events_started(const struct agent_events *events,
                          const struct job_env *job,
                          const struct attempt *attempt, uint32_t worker)
{
    if (events->config != NULL) {
        struct event_worker told = worker_of(attempt, worker);

        tell_worker(events, job, "START", &told);
    }
}

/* As Python has it: the code, or the signal below 0. */
static int exit_code_of(const struct worker *worker)
{
    if (worker->state != WORKER_EXITED) {
        return worker->step == GUARD_STEP_EXEC
                   ? exit_status_of_exec((int)worker->error)
                   : EXIT_FLAUNCH; /* it never ran */
    }
    return WIFSIGNALED(worker->wait_status) ? -WTERMSIG(worker->wait_status)
                                            : WEXITSTATUS(worker->wait_status);
}

static void tell_end_of(const struct agent_events *events,
                        const struct job_env *job,
                        const struct attempt *attempt, uint32_t i)
{
    struct event_worker told = worker_of(attempt, i);
    struct error_record record = { 0 };
    bool failed = attempt->group.first_failure != WORKER_NONE;

    told.exit_code = exit_code_of(&attempt->group.workers[i]);
    told.failed = !worker_ended_well(&attempt->group.workers[i]);
    if (told.failed && attempt->error_files[i] != NULL &&
        error_record_read(attempt->error_files[i], &record, NULL) == 0) {
        told.error = record.json;
    }
    tell_worker(events, job,
                told.failed ? "FAILED"
                : failed    ? "TERMINATED"
                            : "SUCCEEDED",
                &told);
    error_record_destroy(&record);
}

void agent_events_end(const struct agent_events *events,
                      const struct job_env *job, const struct attempt *attempt,
                      const char *why)
{
    uint32_t i;

    if (events->config == NULL) {
        return;
    }
    if (why != NULL) {
        tell_agent(events, job, "FAILED", -1, why);
        return;
    }
    for (i = 0; i < attempt->group.n; i++) {
        tell_end_of(events, job, attempt, i);
    }
    tell_agent(events, job, "SUCCEEDED", -1, NULL);
}
