#include "launcher/agent.h"

#include "common/clock.h"
#include "common/log.h"
#include "launcher/agent_report.h"
#include "launcher/agent_state.h"
#include "launcher/attempt.h"
#include "launcher/cgroup.h"
#include "launcher/cgroup_leaf.h"
#include "launcher/coordinator.h"
#include "launcher/exit_status.h"
#include "launcher/failure.h"
#include "launcher/guard_link.h"
#include "launcher/guard_reap.h"
#include "launcher/limits.h"
#include "launcher/patience.h"
#include "launcher/signal_names.h"
#include "launcher/signals.h"
#include "launcher/stacks.h"
#include "launcher/streams.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BASELINE_MS 20
/* A stop that takes longer is told of. */
#define SLOW_STOP_MS 1000

struct agent {
    const struct agent_setup *setup;
    uv_loop_t loop;
    struct signals signals;
    struct guard_link link;
    uv_timer_t slow_timer; /* a stop takes long */
    uv_timer_t next_timer; /* the next attempt begins */
    struct limits limits;
    uv_timer_t baseline_timer; /* look what the kernel has counted so far */
    bool gave_up;              /* on a reader that does not read */
    size_t unwritten;          /* bytes, at the end */
    struct streams streams;
    struct patience patience;
    struct coordinator coordinator;
    struct job_env job; /* of this attempt */
    struct attempt attempt;
    enum agent_state state;
    int stop_signal;
    char reason[256]; /* why we stopped the job; "" */
    int64_t oom_kills_before;
    unsigned n_stop_signals;
    int own_failure;
    bool timed_out;
    struct stacks stacks;
    bool stacks_wanted; /* before a time limit stops the job */
    bool guard_gone;    /* ended and reaped by us */
    bool stuck;         /* something survived SIGKILL */
};

static void agent_finish(struct agent *agent)
{
    const struct guard_msg drained = { .type = GUARD_DRAINED };
    uv_timer_t *timers[] = { &agent->slow_timer, &agent->next_timer,
                             &agent->baseline_timer };
    size_t i;

    (void)guard_link_send(&agent->link, &drained);
    signals_stop(&agent->signals);
    streams_stop(&agent->streams);
    stacks_stop(&agent->stacks);
    limits_stop(&agent->limits);
    patience_close(&agent->patience);
    guard_link_stop(&agent->link);
    /* The guard leaves by this while we put the rest away. */
    (void)shutdown(agent->setup->guard.fd, SHUT_RDWR);
    for (i = 0; i < sizeof(timers) / sizeof(timers[0]); i++) {
        uv_close((uv_handle_t *)timers[i], NULL);
    }
}

static void nothing_more(void *arg)
{
    (void)arg;
}

static void send_stop(struct agent *agent, int signo, uint64_t grace_ms)
{
    struct guard_msg msg = { .type = GUARD_STOP,
                             .signo = (uint32_t)signo,
                             .grace_ms = grace_ms };

    /* Where the guard is gone its end comes as an event. */
    (void)guard_link_send(&agent->link, &msg);
}

/* Whoever waits for a stop learns what it waits for. */
static void slow_stop(uv_timer_t *timer)
{
    struct agent *agent = timer->data;
    double seconds = (double)agent->setup->config->shutdown_ms / 1000;
    uint32_t rank = agent->attempt.group.first_failure;

    if (agent->state != AGENT_STOPPING || rank == WORKER_NONE) {
        return;
    }
    log_line(LOG_INFO,
             "rank %u failed; %u other%s still running and will be killed "
             "%g s after it",
             rank, agent->attempt.group.n_running,
             agent->attempt.group.n_running == 1 ? " is" : "s are", seconds);
}

static void next_attempt_begin(struct agent *agent);
static void attempt_over(struct agent *agent);
static void say_result(struct agent *agent);

/* Output is being waited for: how long? */
static void output_wait(struct agent *agent)
{
    bool last = agent->n_stop_signals > 1 || agent->gave_up;

    if (agent->n_stop_signals > 0 || agent->timed_out) {
        patience_begin(&agent->patience, last ? PATIENCE_LAST_MS : PATIENCE_MS);
    }
}

/* Move on, and do what entering the new state means. */
static void agent_event(struct agent *agent, enum agent_event event, int signo)
{
    enum agent_state state = agent_next(agent->state, event);

    if (state == agent->state) {
        return;
    }
    log_line(LOG_DEBUG, "agent: %s, then %s", agent_state_name(agent->state),
             agent_state_name(state));
    agent->state = state;
    switch (state) {
    case AGENT_STOPPING:
        /* Before they are gone: it may be why they got nowhere. */
        store_host_say_waiting(agent->attempt.store);
        worker_group_stopped(&agent->attempt.group, clock_ns());
        send_stop(agent, signo, agent->setup->config->shutdown_ms);
        (void)uv_timer_start(&agent->slow_timer, slow_stop, SLOW_STOP_MS, 0);
        break;
    case AGENT_KILLING:
        worker_group_stopped(&agent->attempt.group, clock_ns());
        send_stop(agent, SIGKILL, 0);
        break;
    case AGENT_DRAINING:
        (void)uv_timer_stop(&agent->slow_timer);
        limits_attempt_over(&agent->limits);
        output_wait(agent);
        streams_drain(&agent->streams);
        break;
    case AGENT_BETWEEN:
        patience_end(&agent->patience);
        attempt_over(agent);
        break;
    case AGENT_RUNNING:
        next_attempt_begin(agent);
        break;
    case AGENT_FLUSHING:
        say_result(agent);
        output_wait(agent);
        streams_flush(&agent->streams);
        break;
    case AGENT_ENDED:
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

/* Say that the workers are being stopped, and when they are killed. */
static void say_stopping(struct agent *agent, const char *why)
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

static void stop_signal_came(struct agent *agent, int signo)
{
    char buffer[32];
    const char *name = signal_name(signo, buffer, sizeof(buffer));

    agent->n_stop_signals++;
    if (agent->state == AGENT_DRAINING || agent->state == AGENT_FLUSHING) {
        output_wait(agent); /* only a reader of ours is waited for */
        return;
    }
    if (agent->n_stop_signals == 1) {
        if (agent->state == AGENT_RUNNING || agent->state == AGENT_BETWEEN) {
            agent->stop_signal = signo;
        }
        say_stopping(agent, name);
        agent_event(agent, AGENT_EV_STOP, signo);
        return;
    }
    if (agent->state == AGENT_STOPPING) {
        log_line(LOG_INFO, "%s again: killing %u worker%s", name,
                 agent->attempt.group.n_running,
                 agent->attempt.group.n_running == 1 ? "" : "s");
    }
    agent_event(agent, AGENT_EV_SECOND_SIGNAL, signo);
}

static void say_stacks(const char *text, size_t len, void *arg)
{
    struct agent *agent = arg;

    streams_say(&agent->streams, text, len);
}

static void stop_for_time(struct agent *agent, const char *why);

static void stacks_done(void *arg)
{
    struct agent *agent = arg;

    stop_for_time(agent, agent->reason);
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

static void stop_for_time(struct agent *agent, const char *why)
{
    if (agent->state != AGENT_RUNNING && agent->state != AGENT_BETWEEN) {
        return; /* it ends already */
    }
    if (agent->stacks_wanted && stacks_begin(agent, why)) {
        return; /* we come here again */
    }
    agent->timed_out = true;
    say_stopping(agent, why);
    agent_event(agent, AGENT_EV_STOP, SIGTERM);
}

static void limit_is_over(const char *why, void *arg)
{
    stop_for_time(arg, why);
}

/*
 * Reap what is ours to reap but not ours to watch: children flaunch had when
 * it was started, and, where we are process 1, orphans of others. The guard
 * is left for the end.
 */
static void reap_others(struct agent *agent)
{
    for (;;) {
        siginfo_t info = { 0 };

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
            info.si_pid == 0 || info.si_pid == agent->setup->guard.pid) {
            return;
        }
        (void)waitpid(info.si_pid, NULL, WNOHANG);
    }
}

static void send_signal(struct agent *agent, enum guard_msg_type type,
                        int signo)
{
    struct guard_msg msg = { .type = type, .signo = (uint32_t)signo };

    (void)guard_link_send(&agent->link, &msg);
}

/* Ctrl-Z: the workers' groups first, then ourselves; CONT goes the same way. */
static void pause_all(struct agent *agent)
{
    send_signal(agent, GUARD_GROUPS, SIGSTOP);
    (void)raise(SIGSTOP);
}

static void on_signal(int signo, void *arg)
{
    struct agent *agent = arg;

    if (signal_list_has(agent->setup->config->stop, signo)) {
        stop_signal_came(agent, signo);
        return;
    }
    switch (signo) {
    case SIGCHLD:
        reap_others(agent);
        break;
    case SIGTSTP:
        pause_all(agent);
        break;
    case SIGCONT:
        send_signal(agent, GUARD_GROUPS, SIGCONT);
        break;
    case SIGWINCH:
        streams_resize(&agent->streams);
        send_signal(agent, GUARD_SIGNAL, SIGWINCH);
        break;
    default:
        send_signal(agent, GUARD_SIGNAL, signo);
        break;
    }
}

static void on_left(struct agent *agent, const struct guard_msg *msg)
{
    log_line(LOG_ERROR,
             "process %u (%s, state %c, waits in %s) survived SIGKILL for "
             "%d s and is left behind",
             msg->pid, msg->name, (char)msg->state, msg->wchan,
             REAP_LIMIT_MS / 1000);
    agent->stuck = true;
}

static void on_message(const struct guard_msg *msg, const int *fds, void *arg)
{
    struct agent *agent = arg;

    switch (msg->type) {
    case GUARD_EMPTY:
        agent_event(agent, AGENT_EV_GUARD_EMPTY, 0);
        break;
    case GUARD_LEFT:
        on_left(agent, msg);
        break;
    default:
        if (msg->type == GUARD_SPAWNED) {
            streams_take(&agent->streams, msg->worker, fds, msg->count);
        }
        if (worker_group_take(&agent->attempt.group, msg)) {
            agent_event(agent, AGENT_EV_WORKER_FAILED, SIGTERM);
        } else if (msg->type == GUARD_EXITED && agent->state == AGENT_RUNNING) {
            limits_rank_done(&agent->limits);
        }
        if (msg->type == GUARD_EXITED) {
            streams_worker_ended(&agent->streams, msg->worker);
        }
        break;
    }
}

/*
 * The guard is dead: its workers died with it, and everything else has come
 * to us. Do its work.
 */
static void guard_lost(struct agent *agent)
{
    struct reaper reaper = {
        .skip = { .pids = agent->setup->inherited->children,
                  .n_pids = agent->setup->inherited->n_children }
    };
    size_t i;

    log_line(LOG_ERROR, "the guard (pid %ld) ended; killing what is left",
             (long)agent->setup->guard.pid);
    agent->own_failure = EXIT_FLAUNCH;
    agent->guard_gone = true;
    agent_event(agent, AGENT_EV_GUARD_LOST, SIGKILL);
    if (reaper_kill_all(&reaper) == REAP_GAVE_UP) {
        for (i = 0; i < reaper.table.n; i++) {
            const struct proc *proc = &reaper.table.procs[i];
            struct guard_msg left = { .pid = (uint32_t)proc->pid,
                                      .state = (uint8_t)proc->state };

            if (proc->descendant) {
                memcpy(left.name, proc->name, sizeof(left.name));
                proc_wchan(proc->pid, left.wchan, sizeof(left.wchan));
                on_left(agent, &left);
            }
        }
    }
    reaper_destroy(&reaper);
    cgroup_leaf_remove_of(agent->setup->guard.pid);
    agent_event(agent, AGENT_EV_GUARD_EMPTY, 0);
}

static void on_guard_ended(void *arg)
{
    struct agent *agent = arg;

    if (agent->stuck) {
        agent->own_failure = EXIT_FLAUNCH;
        agent_event(agent, AGENT_EV_GUARD_EMPTY, 0);
        return;
    }
    guard_lost(agent);
}

static const struct guard_link_events link_events = {
    .message = on_message,
    .ended = on_guard_ended,
    .closed = nothing_more,
};

static void on_drained(void *arg)
{
    agent_event(arg, AGENT_EV_DRAINED, 0);
}

static void on_flushed(void *arg)
{
    agent_event(arg, AGENT_EV_FLUSHED, 0);
}

/* As a program that writes to a pipe without a reader: it ends. */
static void on_reader_gone(void *arg)
{
    struct agent *agent = arg;

    if (agent->state == AGENT_RUNNING || agent->state == AGENT_BETWEEN) {
        agent->stop_signal = SIGPIPE;
        agent->n_stop_signals++;
        say_stopping(agent, "nobody reads our stdout any more");
        agent_event(agent, AGENT_EV_STOP, SIGTERM);
    }
}

static const struct streams_events streams_events = {
    .drained = on_drained,
    .flushed = on_flushed,
    .reader_gone = on_reader_gone,
    .closed = nothing_more,
};

/* Follow the output of the attempt's workers: 0 or a negative errno, said. */
static int attempt_follow(struct agent *agent)
{
    int rc = streams_attempt(&agent->streams, &agent->attempt.plan);

    if (rc < 0) {
        log_line(LOG_ERROR, "cannot follow the workers' output: %s",
                 strerror(-rc));
    }
    return rc;
}

/* The workers go first: the guard forks them while we do the rest. */
static void next_attempt_begin(struct agent *agent)
{
    int rc =
        attempt_send_workers(&agent->attempt, agent->setup->config, &agent->job,
                             agent->setup->files, agent->setup->guard.fd);

    if (rc < 0) {
        /* The guard has nothing to end, and will not say EMPTY. */
        agent->own_failure = EXIT_FLAUNCH;
        agent_event(agent, AGENT_EV_OWN_FAILURE, SIGKILL);
        agent_event(agent, AGENT_EV_GUARD_EMPTY, 0);
        return;
    }
    if (attempt_follow(agent) < 0 ||
        attempt_serve(&agent->attempt, agent->setup->listen_fd) < 0) {
        agent->own_failure = EXIT_FLAUNCH;
        agent_event(agent, AGENT_EV_OWN_FAILURE, SIGKILL);
    }
}

static struct outcome agent_outcome(const struct agent *agent)
{
    return (struct outcome){
        .group = &agent->attempt.group,
        .program = agent->setup->config->command.path,
        .stop_signal = agent->stop_signal,
        .timed_out = agent->timed_out,
        .own_failure = agent->own_failure,
    };
}

static void next_attempt(uv_timer_t *timer)
{
    struct agent *agent = timer->data;

    if (agent->state != AGENT_BETWEEN) {
        return;
    }
    streams_forget(&agent->streams);
    attempt_end(&agent->attempt);
    agent->job.attempt = agent->coordinator.restarts;
    agent_event(agent, AGENT_EV_NEXT, 0);
}

/* An attempt has ended and nothing of it is left: another one, or the end.
 */
static void attempt_over(struct agent *agent)
{
    struct outcome outcome = agent_outcome(agent);
    int code = outcome_exit_code(&outcome);
    struct attempt_end end = {
        .failed = agent->attempt.group.first_failure != WORKER_NONE,
        .for_good = agent->n_stop_signals > 0 || agent->timed_out ||
                    agent->own_failure != 0 || code == EXIT_NOT_FOUND ||
                    code == EXIT_NOT_EXECUTABLE,
        .lasted_ms = clock_ms() - agent->attempt.began_ms,
    };
    uint64_t delay_ms;
    char text[512];

    if (!coordinator_attempt_ended(&agent->coordinator, &end, &delay_ms)) {
        agent_event(agent, AGENT_EV_END, 0);
        return;
    }
    outcome_describe(&outcome, text, sizeof(text));
    /* Its outcome is asked for again if there is no next attempt after all.
     */
    attempt_stop_store(&agent->attempt);
    log_line(LOG_WARN, "%s; restart %u of %u in %g s", text,
             agent->coordinator.restarts, agent->coordinator.max_restarts,
             (double)delay_ms / 1000);
    (void)uv_timer_start(&agent->next_timer, next_attempt, delay_ms, 0);
}

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
    int rc;

    /* Timers cannot fail. */
    (void)uv_timer_init(&agent->loop, &agent->slow_timer);
    (void)uv_timer_init(&agent->loop, &agent->next_timer);
    agent->slow_timer.data = agent;
    agent->next_timer.data = agent;
    limits_start(&agent->limits, &agent->loop, agent->setup->config,
                 &agent->attempt.group, limit_is_over, agent);
    patience_init(&agent->patience, &agent->loop, &agent->streams,
                  give_up_output, agent);
    (void)uv_timer_init(&agent->loop, &agent->baseline_timer);
    agent->baseline_timer.data = agent;
    (void)uv_timer_start(&agent->baseline_timer, take_baseline, BASELINE_MS, 0);
    rc =
        signals_start(&agent->signals, &agent->loop, agent->setup->inherited,
                      agent->setup->config->stop, agent->setup->config->forward,
                      on_signal, nothing_more, agent);
    if (rc == 0) {
        rc = guard_link_start(&agent->link, &agent->loop,
                              agent->setup->guard.fd, &link_events, agent);
    }
    if (rc == 0) {
        rc = streams_start(&agent->streams, &agent->loop,
                           &agent->setup->config->log.screen, &streams_events,
                           agent);
    }
    if (rc == 0) {
        rc = streams_attempt(&agent->streams, &agent->attempt.plan);
    }
    if (rc < 0) {
        agent_finish(agent);
        return rc;
    }
    return 0;
}

/* Wait for the guard's end, so that nothing of us outlives us. */
static void guard_wait_end(struct agent *agent)
{
    if (!agent->guard_gone) {
        while (waitpid(agent->setup->guard.pid, NULL, 0) < 0 &&
               errno == EINTR) {
        }
    }
}

/* The job is over: the last thing on the screen. */
static void say_result(struct agent *agent)
{
    struct outcome outcome = agent_outcome(agent);
    struct agent_report report = {
        .outcome = &outcome,
        .job = &agent->job,
        .attempt = &agent->attempt,
        .streams = &agent->streams,
        .reason = agent->reason,
        .oom_kills_before = agent->oom_kills_before,
    };

    agent_report_say(&report);
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

/* The whole run: its workers are started already. */
static int agent_main(struct agent *agent)
{
    int code = EXIT_FLAUNCH;
    int rc = agent_open(agent);

    if (rc < 0) {
        log_line(LOG_ERROR, "cannot start: %s", strerror(-rc));
    } else if (attempt_serve(&agent->attempt, agent->setup->listen_fd) < 0) {
        agent->own_failure = EXIT_FLAUNCH;
        agent_event(agent, AGENT_EV_OWN_FAILURE, SIGKILL);
    }
    (void)uv_run(&agent->loop, UV_RUN_DEFAULT);
    if (rc == 0) {
        struct outcome outcome = agent_outcome(agent);

        say_unwritten(agent);
        code = outcome_exit_code(&outcome);
    }
    return code;
}

/* Fill in what a run begins with. */
static void agent_init(struct agent *agent, const struct agent_setup *setup)
{
    agent->setup = setup;
    agent->oom_kills_before = -1;
    agent->stacks_wanted = setup->config->stacks;
    agent->job = setup->config->job;
    coordinator_init(&agent->coordinator, setup->config->job.max_restarts,
                     setup->config->backoff_ms);
}

int agent_run(const struct agent_setup *setup)
{
    static struct agent agent;
    int code = EXIT_FLAUNCH;
    int rc;

    agent_init(&agent, setup);
    /* Until somebody watches for them, signals wait. */
    signals_hold();
    rc = attempt_send_workers(&agent.attempt, setup->config, &agent.job,
                              setup->files, setup->guard.fd);
    if (rc == 0) {
        rc = uv_loop_init(&agent.loop);
        if (rc < 0) {
            log_line(LOG_ERROR, "cannot start: %s", strerror(-rc));
        } else {
            code = agent_main(&agent);
        }
    }
    (void)close(setup->guard.fd);
    attempt_end(&agent.attempt);
    guard_wait_end(&agent);
    (void)close(setup->listen_fd);
    return code;
}
