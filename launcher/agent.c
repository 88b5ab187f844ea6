#include "launcher/agent.h"

#include "common/clock.h"
#include "common/log.h"
#include "launcher/agent_impl.h"
#include "launcher/cgroup.h"
#include "launcher/exit_status.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BASELINE_MS 20
/* A stop that takes longer is told of. */
#define SLOW_STOP_MS 1000

static void nothing_more(void *arg)
{
    (void)arg;
}

static void agent_finish(struct agent *agent)
{
    const struct guard_msg drained = { .type = GUARD_DRAINED };

    (void)guard_link_send(&agent->link, &drained);
    rdzv_stop(&agent->rdzv);
    signals_stop(&agent->signals);
    streams_stop(&agent->streams);
    stacks_stop(&agent->stacks);
    limits_stop(&agent->limits);
    agent_watch_stop(agent);
    patience_close(&agent->patience);
    guard_link_stop(&agent->link);
    /* The guard leaves by this while we put the rest away. */
    (void)shutdown(agent->setup->guard.fd, SHUT_RDWR);
    uv_close((uv_handle_t *)&agent->slow_timer, NULL);
    uv_close((uv_handle_t *)&agent->baseline_timer, NULL);
}

struct outcome agent_outcome(const struct agent *agent)
{
    const struct nodes *nodes = &agent->setup->config->nodes;

    return (struct outcome){
        .group = &agent->attempt.group,
        .program = agent->setup->config->command.path,
        .host = nodes->max > 1 ? nodes->name : NULL,
        .stop_signal = agent->stop_signal,
        .timed_out = agent->timed_out,
        .own_failure = agent->own_failure,
    };
}

/* Why it ends, where not by its workers' own end; else NULL. */
static const char *end_reason(const struct agent *agent)
{
    if (agent->stop_signal == 0 && agent->own_failure == 0 &&
        !agent->timed_out && agent->round != 0) {
        return NULL;
    }
    return agent->end_text[0] != '\0' ? agent->end_text
           : agent->reason[0] != '\0' ? agent->reason
                                      : "the job was stopped";
}

/* The job is over: the last thing on the screen. */
static void say_result(struct agent *agent)
{
    struct outcome outcome = agent_outcome(agent);
    struct agent_report from = {
        .outcome = &outcome,
        .job = &agent->job,
        .attempt = &agent->attempt,
        .streams = &agent->streams,
        .oom_kills_before = agent->oom_kills_before,
    };

    agent_events_end(&agent->events, &agent->job, &agent->attempt,
                     end_reason(agent));
    agent_report_say(&from, &agent->end);
}

void agent_output_wait(struct agent *agent)
{
    bool last = agent->n_stop_signals > 1 || agent->gave_up;

    if (agent->n_stop_signals > 0 || agent->timed_out) {
        patience_begin(&agent->patience, last ? PATIENCE_LAST_MS : PATIENCE_MS);
    }
}

static void enter_stopping(struct agent *agent, int signo)
{
    /* Before they are gone: it may be why they got nowhere. */
    rdzv_say_waiting(&agent->rdzv);
    worker_group_stopped(&agent->attempt.group, clock_ns());
    agent_send_stop(agent, signo, agent->setup->config->shutdown_ms);
    (void)uv_timer_start(&agent->slow_timer, agent_slow_stop, SLOW_STOP_MS, 0);
}

static void enter_waiting(struct agent *agent)
{
    patience_end(&agent->patience);
    agent_events_wait(&agent->events);
    /* The answer may come inside this call. */
    agent_tell_ended(agent);
    if (agent->own_failure != 0 && agent->rdzv.host == NULL) {
        agent_end_alone(agent, agent->own_failure); /* as a lost node */
    }
    if (agent->have_end) {
        agent_event(agent, AGENT_EV_END, 0);
    }
}

void agent_event(struct agent *agent, enum agent_event event, int signo)
{
    enum agent_state state = agent_next(agent->state, event);

    if (state == agent->state) {
        return;
    }
    log_line(LOG_DEBUG, "agent: %s, then %s", agent_state_name(agent->state),
             agent_state_name(state));
    agent->state = state;
    switch (state) {
    case AGENT_WAITING:
        enter_waiting(agent);
        break;
    case AGENT_RUNNING:
        break; /* see agent_round.c */
    case AGENT_STOPPING:
        enter_stopping(agent, signo);
        break;
    case AGENT_KILLING:
        worker_group_stopped(&agent->attempt.group, clock_ns());
        agent_send_stop(agent, SIGKILL, 0);
        break;
    case AGENT_DRAINING:
        (void)uv_timer_stop(&agent->slow_timer);
        limits_attempt_over(&agent->limits);
        agent_watch_forget(agent);
        agent_output_wait(agent);
        streams_drain(&agent->streams);
        break;
    case AGENT_FLUSHING:
        say_result(agent);
        agent_output_wait(agent);
        streams_flush(&agent->streams);
        break;
    case AGENT_OVER:
        agent_finish(agent);
        break;
    }
}

/* Nobody reads what we write: leave it. */
static void give_up_output(void *arg)
{
    struct agent *agent = arg;
    uint64_t written;

    agent->gave_up = true;
    if (agent->state == AGENT_DRAINING) {
        streams_give_up(&agent->streams);
    }
    if (agent->state == AGENT_FLUSHING) {
        streams_progress(&agent->streams, &written, &agent->unwritten);
        agent_event(agent, AGENT_EV_FLUSHED, 0);
    }
}

static void on_drained(void *arg)
{
    agent_event(arg, AGENT_EV_DRAINED, 0);
}

static void on_flushed(void *arg)
{
    agent_event(arg, AGENT_EV_FLUSHED, 0);
}

static void on_reader_gone(void *arg)
{
    agent_reader_gone(arg);
}

static const struct streams_events streams_events = {
    .drained = on_drained,
    .flushed = on_flushed,
    .reader_gone = on_reader_gone,
    .closed = nothing_more,
};

/*
 * What has been counted before is no work of this job. Not at once: it
 * takes as long as a worker's start, and no worker runs out of memory so
 * soon.
 */
static void take_baseline(uv_timer_t *timer)
{
    struct agent *agent = timer->data;

    agent->oom_kills_before = cgroup_oom_kills("");
}

/* Make every handle: 0 or a negative errno, and then they are closing. */
static int agent_open(struct agent *agent)
{
    struct err err = { 0 };
    int rc;

    /* Timers cannot fail. */
    (void)uv_timer_init(&agent->loop, &agent->slow_timer);
    agent->slow_timer.data = agent;
    limits_start(&agent->limits, &agent->loop, agent->setup->config,
                 &agent->attempt.group, agent_limit_over, agent);
    patience_init(&agent->patience, &agent->loop, &agent->streams,
                  give_up_output, agent);
    (void)uv_timer_init(&agent->loop, &agent->baseline_timer);
    agent->baseline_timer.data = agent;
    (void)uv_timer_start(&agent->baseline_timer, take_baseline, BASELINE_MS, 0);
    rc =
        signals_start(&agent->signals, &agent->loop, agent->setup->inherited,
                      agent->setup->config->stop, agent->setup->config->forward,
                      agent_on_signal, nothing_more, agent);
    if (rc == 0) {
        rc =
            guard_link_start(&agent->link, &agent->loop, agent->setup->guard.fd,
                             &agent_link_events, agent);
    }
    if (rc == 0) {
        rc = streams_start(&agent->streams, &agent->loop,
                           &agent->setup->config->log.screen, &streams_events,
                           agent);
    }
    if (rc == 0) {
        rc = agent_watch_start(agent, &err);
        if (rc < 0) {
            log_line(LOG_ERROR, "%s", err.text);
        }
    }
    if (rc == 0 && agent->state == AGENT_RUNNING) {
        rc = agent_follow(agent);
    }
    if (rc < 0) {
        agent_finish(agent);
        return rc;
    }
    agent->open = true;
    return 0;
}

/* Where even that takes it. */
static void say_unwritten(const struct agent *agent)
{
    struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };

    if (agent->unwritten > 0 && poll(&ready, 1, 0) == 1) {
        log_line(LOG_WARN,
                 "%zu bytes of output were not written: nobody reads "
                 "them",
                 agent->unwritten);
    }
}

/* The whole run; on one node its workers are started already. */
static int agent_main(struct agent *agent)
{
    int rc = agent_open(agent);

    if (rc < 0) {
        log_line(LOG_ERROR, "cannot start: %s", strerror(-rc));
    } else {
        (void)rdzv_open(&agent->rdzv, &agent->loop);
    }
    (void)uv_run(&agent->loop, UV_RUN_DEFAULT);
    if (rc < 0) {
        return EXIT_FLAUNCH;
    }
    say_unwritten(agent);
    return agent->end.code;
}

/* Fill in what a run begins with. */
static int agent_init(struct agent *agent, const struct agent_setup *setup)
{
    const struct rdzv_setup rdzv = { .config = setup->config,
                                     .listeners = setup->listeners,
                                     .events = &agent_rdzv_events,
                                     .arg = agent };

    agent->setup = setup;
    agent->state = AGENT_WAITING;
    agent->oom_kills_before = -1;
    agent->stacks_wanted = setup->config->stacks;
    agent->job = setup->config->job;
    agent_events_begin(&agent->events, setup->config);
    agent->end.text = "";
    agent->end.report = "";
    return rdzv_init(&agent->rdzv, &rdzv);
}

int agent_run(const struct agent_setup *setup)
{
    static struct agent agent;
    int code = EXIT_FLAUNCH;
    int rc = agent_init(&agent, setup);

    if (rc == 0) {
        /* Until somebody watches for them, signals wait. */
        signals_hold();
        rdzv_begin(&agent.rdzv);
        rc = agent.own_failure == 0 ? uv_loop_init(&agent.loop) : 0;
    }
    if (rc < 0) {
        log_line(LOG_ERROR, "cannot start: %s", strerror(-rc));
    } else if (agent.own_failure == 0) {
        code = agent_main(&agent);
    }
    (void)close(setup->guard.fd);
    rdzv_destroy(&agent.rdzv);
    attempt_end(&agent.attempt);
    buf_destroy(&agent.end_report);
    agent_wait_guard(&agent);
    return code;
}
