#include "launcher/agent_impl.h"

#include "common/log.h"
#include "launcher/exit_status.h"
#include "launcher/signal_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void agent_slow_stop(uv_timer_t *timer)
{
    struct agent *agent = timer->data;
    const struct worker_group *group = &agent->attempt.group;
    double seconds = (double)agent->setup->config->shutdown_ms / 1000;

    if (agent->state != AGENT_STOPPING || group->first_failure == WORKER_NONE ||
        group->n_running == 0) {
        return;
    }
    log_line(LOG_INFO,
             "rank %u failed; %u other%s still running and will be killed "
             "%g s after it",
             group->base_rank + group->first_failure, group->n_running,
             group->n_running == 1 ? " is" : "s are", seconds);
}

void agent_say_stopping(struct agent *agent, const char *why)
{
    if (why != agent->reason) {
        (void)snprintf(agent->reason, sizeof(agent->reason), "%s", why);
    }
    log_line(LOG_INFO,
             "%s: %u worker%s stopping; SIGKILL in %g s, or at the next "
             "signal",
             why, agent->attempt.group.n_running,
             agent->attempt.group.n_running == 1 ? " is" : "s are",
             (double)agent->setup->config->shutdown_ms / 1000);
}

/* Whether workers run that a stop is news for. */
static bool has_workers(const struct agent *agent)
{
    return agent->state == AGENT_RUNNING || agent->state == AGENT_STOPPING;
}

static void first_stop_signal(struct agent *agent, int signo, const char *name)
{
    if (agent->state != AGENT_KILLING) {
        agent->stop_signal = signo;
    }
    /* Between two attempts of one node nothing runs, but a stop is news. */
    if (has_workers(agent) || (agent->setup->config->nodes.max == 1 &&
                               agent->state == AGENT_WAITING)) {
        agent_say_stopping(agent, name);
    }
    agent_event(agent, AGENT_EV_STOP, signo);
    agent_ask_stop(agent, EXIT_SIGNAL_BASE + signo, signo, false, name);
}

static void stop_signal_came(struct agent *agent, int signo)
{
    char buffer[32];
    const char *name = signal_name(signo, buffer, sizeof(buffer));

    agent->n_stop_signals++;
    if (agent->state == AGENT_DRAINING || agent->state == AGENT_FLUSHING) {
        agent_output_wait(agent); /* only a reader of ours is waited for */
    }
    if (agent->state == AGENT_FLUSHING) {
        return;
    }
    if (agent->n_stop_signals == 1) {
        first_stop_signal(agent, signo, name);
        return;
    }
    if (agent->state == AGENT_STOPPING) {
        log_line(LOG_INFO, "%s again: killing %u worker%s", name,
                 agent->attempt.group.n_running,
                 agent->attempt.group.n_running == 1 ? "" : "s");
    }
    agent_event(agent, AGENT_EV_SECOND_SIGNAL, signo);
    agent_ask_stop(agent, EXIT_SIGNAL_BASE + signo, signo, true, name);
    if (agent->state == AGENT_WAITING) {
        agent_end_alone(agent, EXIT_SIGNAL_BASE + agent->stop_signal);
    }
}

static void say_stacks(const char *text, size_t len, void *arg)
{
    struct agent *agent = arg;

    streams_say(&agent->streams, text, len);
}

static void stacks_done(void *arg)
{
    struct agent *agent = arg;

    agent_limit_over(agent->reason, agent);
}

/* --stacks: true where the stop waits for them. */
static bool stacks_begin(struct agent *agent, const char *why)
{
    pid_t *pids = NULL;
    uint32_t n = 0;
    int rc = worker_group_running_pids(&agent->attempt.group, &pids, &n);

    agent->stacks_wanted = false;
    if (rc == 0 && n > 0) {
        (void)snprintf(agent->reason, sizeof(agent->reason), "%s", why);
        rc = stacks_start(&agent->stacks, &agent->loop, pids, n, say_stacks,
                          stacks_done, agent);
    }
    free(pids);
    if (rc < 0) {
        log_line(LOG_WARN, "--stacks: cannot run gdb: %s", strerror(-rc));
        stacks_stop(&agent->stacks);
    }
    return rc == 0 && n > 0;
}

void agent_limit_over(const char *why, void *arg)
{
    struct agent *agent = arg;

    if (agent->state != AGENT_RUNNING && agent->state != AGENT_WAITING) {
        return; /* it ends already */
    }
    if (agent->stacks_wanted && stacks_begin(agent, why)) {
        return; /* we come here again */
    }
    agent->timed_out = true;
    agent_say_stopping(agent, why);
    agent_event(agent, AGENT_EV_STOP, SIGTERM);
    agent_ask_stop(agent, EXIT_TIME_LIMIT, 0, false, agent->reason);
}

void agent_reader_gone(struct agent *agent)
{
    if (agent->state != AGENT_RUNNING && agent->state != AGENT_WAITING) {
        return;
    }
    agent->stop_signal = SIGPIPE;
    agent->n_stop_signals++;
    agent_say_stopping(agent, "nobody reads our stdout any more");
    agent_event(agent, AGENT_EV_STOP, SIGTERM);
    agent_ask_stop(agent, EXIT_SIGNAL_BASE + SIGPIPE, SIGTERM, false,
                   agent->reason);
}

/*
 * Ctrl-Z: the workers' groups first, then ourselves; CONT goes the same way.
 * With several nodes a stopped agent would be declared dead.
 */
static void pause_all(struct agent *agent)
{
    if (agent->setup->config->nodes.max > 1) {
        log_line(LOG_WARN,
                 "SIGTSTP is ignored: a job on several nodes cannot be paused "
                 "on one of them");
        return;
    }
    agent_send_signal(agent, GUARD_GROUPS, SIGSTOP);
    (void)raise(SIGSTOP);
}

void agent_on_signal(int signo, void *arg)
{
    struct agent *agent = arg;

    if (signal_list_has(agent->setup->config->stop, signo)) {
        stop_signal_came(agent, signo);
        return;
    }
    switch (signo) {
    case SIGCHLD:
        agent_reap_others(agent);
        break;
    case SIGTSTP:
        pause_all(agent);
        break;
    case SIGCONT:
        agent_send_signal(agent, GUARD_GROUPS, SIGCONT);
        break;
    case SIGWINCH:
        streams_resize(&agent->streams);
        agent_send_signal(agent, GUARD_SIGNAL, SIGWINCH);
        break;
    default:
        agent_send_signal(agent, GUARD_SIGNAL, signo);
        break;
    }
}
