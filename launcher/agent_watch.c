#include "launcher/agent_impl.h"

#include "common/log.h"
#include "launcher/proc_ns.h"
#include "launcher/signal_names.h"

#include <signal.h>

static const char *health_state(void *arg)
{
    const struct agent *agent = arg;

    return agent_state_name(agent->state);
}

static void end_overdue(const struct worker *worker)
{
    if (worker->overdue && worker->state == WORKER_RUNNING) {
        (void)kill((pid_t)worker->pid, SIGKILL);
    }
}

/* Those that had a signal of their choice and the whole grace. */
static void on_overdue(uv_timer_t *timer)
{
    struct agent *agent = timer->data;
    uint32_t i;

    for (i = 0; i < agent->attempt.group.n; i++) {
        end_overdue(&agent->attempt.group.workers[i]);
    }
}

/* The worker that a process is, or descends from; WORKER_NONE: none. */
static uint32_t worker_of(const struct agent *agent, const pid_t *line,
                          size_t n_line)
{
    const struct worker_group *group = &agent->attempt.group;
    uint32_t i;
    size_t k;

    for (i = 0; i < group->n; i++) {
        for (k = 0; k < n_line; k++) {
            if (group->workers[i].state == WORKER_RUNNING &&
                (pid_t)group->workers[i].pid == line[k]) {
                return i;
            }
        }
    }
    return WORKER_NONE;
}

/*
 * A process has not done in time what it had set itself: it gets its signal,
 * its worker has failed, and nobody else is harmed.
 */
static void on_expired(const struct watchdog_timer *timer, void *arg)
{
    struct agent *agent = arg;
    pid_t line[PROC_LINE_MAX];
    size_t n_line = proc_line_of(agent->setup->guard.pid, timer->pid, line);
    uint32_t i = worker_of(agent, line, n_line);
    char buffer[32];

    if (timer->signo == 0) {
        return;
    }
    if (i == WORKER_NONE) {
        log_line(LOG_WARN,
                 "watchdog: the timer \"%s\" of process %d has expired, which "
                 "is no worker's",
                 timer->scope, (int)timer->pid);
        return;
    }
    log_line(LOG_ERROR,
             "rank %u: the timer \"%s\" of process %d has expired: sending it "
             "%s",
             agent->attempt.group.base_rank + i, timer->scope, (int)line[0],
             signal_name(timer->signo, buffer, sizeof(buffer)));
    agent->attempt.group.workers[i].overdue = true;
    (void)kill(line[0], timer->signo);
    if (timer->signo == SIGKILL || agent->setup->config->shutdown_ms == 0) {
        end_overdue(&agent->attempt.group.workers[i]);
    } else if (!uv_is_active((uv_handle_t *)&agent->overdue_timer)) {
        (void)uv_timer_start(&agent->overdue_timer, on_overdue,
                             agent->setup->config->shutdown_ms, 0);
    }
}

int agent_watch_start(struct agent *agent, struct err *err)
{
    const struct config *config = agent->setup->config;
    struct err trouble = { 0 };

    (void)uv_timer_init(&agent->loop, &agent->overdue_timer);
    agent->overdue_timer.data = agent;
    if (config->health != NULL &&
        health_start(&agent->health, &agent->loop, config->health, health_state,
                     agent, &trouble) < 0) {
        log_line(LOG_WARN, "%s", trouble.text);
    }
    return config->job.timer_file != NULL
               ? timer_fifo_start(&agent->timers, &agent->loop,
                                  config->job.timer_file, on_expired, agent,
                                  err)
               : 0;
}

void agent_watch_forget(struct agent *agent)
{
    timer_fifo_forget(&agent->timers);
    (void)uv_timer_stop(&agent->overdue_timer);
}

void agent_watch_stop(struct agent *agent)
{
    health_stop(&agent->health);
    timer_fifo_stop(&agent->timers);
    if (agent->overdue_timer.data != NULL) {
        uv_close((uv_handle_t *)&agent->overdue_timer, NULL);
    }
}
