#include "launcher/agent_impl.h"

#include "common/log.h"
#include "launcher/cgroup_leaf.h"
#include "launcher/exit_status.h"
#include "launcher/guard_reap.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

void agent_send_stop(struct agent *agent, int signo, uint64_t grace_ms)
{
    struct guard_msg msg = { .type = GUARD_STOP,
                             .signo = (uint32_t)signo,
                             .grace_ms = grace_ms };

    /* Where the guard is gone its end comes as an event. */
    (void)guard_link_send(&agent->link, &msg);
}

void agent_send_signal(struct agent *agent, enum guard_msg_type type, int signo)
{
    struct guard_msg msg = { .type = type, .signo = (uint32_t)signo };

    (void)guard_link_send(&agent->link, &msg);
}

/*
 * Children flaunch had when it was started, and, where we are process 1,
 * orphans of others. The guard is left for the end.
 */
void agent_reap_others(struct agent *agent)
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

void agent_wait_guard(struct agent *agent)
{
    if (!agent->guard_gone) {
        while (waitpid(agent->setup->guard.pid, NULL, 0) < 0 &&
               errno == EINTR) {
        }
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

/* Something became of a worker. */
static void on_worker(struct agent *agent, const struct guard_msg *msg,
                      const int *fds)
{
    bool failed;

    if (msg->type == GUARD_SPAWNED) {
        streams_take(&agent->streams, msg->worker, fds, msg->count);
    }
    failed = worker_group_take(&agent->attempt.group, msg);
    if (msg->type == GUARD_SPAWNED && msg->worker < agent->attempt.group.n) {
        agent_events_started(&agent->events, &agent->job, &agent->attempt,
                             msg->worker);
    }
    if (failed) {
        if (agent->state == AGENT_RUNNING) {
            agent_tell_failure(agent);
        }
        agent_event(agent, AGENT_EV_WORKER_FAILED, SIGTERM);
    } else if (msg->type == GUARD_EXITED && agent->state == AGENT_RUNNING) {
        agent_tell_done(agent);
    } else if (msg->type == GUARD_SPAWNED && agent->some_done) {
        limits_rank_done(&agent->limits); /* it is as late as those that run */
    }
    if (msg->type == GUARD_EXITED) {
        streams_worker_ended(&agent->streams, msg->worker);
    }
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
    case GUARD_FENCED:
        /* Before its EMPTY: a round that was killed has not ended well. */
        rdzv_lease_over(&agent->rdzv);
        break;
    default:
        on_worker(agent, msg, fds);
        break;
    }
}

static void reap_all(struct agent *agent)
{
    struct reaper reaper = {
        .skip = { .pids = agent->setup->inherited->children,
                  .n_pids = agent->setup->inherited->n_children }
    };
    size_t i;

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
}

/*
 * The guard is dead: its workers died with it, and everything else has come
 * to us. Do its work.
 */
static void guard_lost(struct agent *agent)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "the guard (pid %ld) ended",
                   (long)agent->setup->guard.pid);
    log_line(LOG_ERROR, "%s; killing what is left", text);
    agent->guard_gone = true;
    agent_event(agent, AGENT_EV_GUARD_LOST, SIGKILL);
    agent_fail(agent, text);
    reap_all(agent);
    agent_event(agent, AGENT_EV_GUARD_EMPTY, 0);
}

static void on_ended(void *arg)
{
    struct agent *agent = arg;

    if (agent->stuck) {
        agent_fail(agent, "a process survived SIGKILL");
        agent_event(agent, AGENT_EV_GUARD_EMPTY, 0);
        return;
    }
    guard_lost(agent);
}

static void on_closed(void *arg)
{
    (void)arg;
}

const struct guard_link_events agent_link_events = {
    .message = on_message,
    .ended = on_ended,
    .closed = on_closed,
};
