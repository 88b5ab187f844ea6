#include "launcher/agent_impl.h"

#include "common/log.h"
#include "launcher/exit_status.h"
#include "launcher/report.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static bool has_several(const struct agent *agent)
{
    return agent->setup->config->nodes.max > 1;
}

/* --- what we say -------------------------------------------------------- */

static struct agent_msg message(const struct agent *agent,
                                enum agent_msg_type type)
{
    struct agent_msg msg = agent_msg_init(type);

    msg.round = agent->round;
    return msg;
}

void agent_tell_failure(struct agent *agent)
{
    struct agent_msg msg = message(agent, AGENT_FAILED);
    struct outcome outcome = agent_outcome(agent);
    int code = outcome_exit_code(&outcome);
    char text[512];

    outcome_describe(&outcome, text, sizeof(text));
    msg.code = (uint32_t)code;
    msg.text = text;
    msg.for_good = code == EXIT_NOT_FOUND || code == EXIT_NOT_EXECUTABLE;
    rdzv_send(&agent->rdzv, &msg);
}

void agent_tell_done(struct agent *agent)
{
    struct agent_msg msg = message(agent, AGENT_FIRST_DONE);

    agent->some_done = true;
    limits_rank_done(&agent->limits);
    if (has_several(agent) && !agent->first_done) {
        agent->first_done = true;
        rdzv_send(&agent->rdzv, &msg);
    }
}

static uint32_t count(const struct worker_group *group,
                      bool (*want)(const struct worker *))
{
    uint32_t n = 0;
    uint32_t i;

    for (i = 0; i < group->n; i++) {
        n += want(&group->workers[i]);
    }
    return n;
}

static struct agent_report report_of(struct agent *agent,
                                     const struct outcome *outcome)
{
    return (struct agent_report){
        .outcome = outcome,
        .job = &agent->job,
        .attempt = &agent->attempt,
        .streams = &agent->streams,
        .oom_kills_before = agent->oom_kills_before,
    };
}

void agent_tell_ended(struct agent *agent)
{
    struct agent_msg msg = message(agent, AGENT_ENDED);
    const struct worker_group *group = &agent->attempt.group;
    struct outcome outcome = agent_outcome(agent);
    struct agent_report from = report_of(agent, &outcome);
    struct buf report = { 0 };
    char text[512];

    msg.code = (uint32_t)outcome_exit_code(&outcome);
    msg.n_stopped = count(group, report_is_stopped);
    msg.n_done = count(group, report_is_done);
    msg.n_failed = group->n_done - msg.n_stopped - msg.n_done;
    outcome_describe(&outcome, text, sizeof(text));
    msg.text = text;
    if (agent_report_make(&from, &report) == 0 && report.len > 0) {
        msg.report = (const char *)report.data;
    }
    rdzv_send(&agent->rdzv, &msg);
    buf_destroy(&report);
}

/* Whether a stop signal here makes the node leave, and the job goes on. */
static bool may_leave(const struct agent *agent, int signo)
{
    const struct nodes *nodes = &agent->setup->config->nodes;

    return nodes->min < nodes->max && agent->rdzv.host == NULL && signo != 0;
}

void agent_ask_stop(struct agent *agent, int code, int signo, bool at_once,
                    const char *why)
{
    bool leave = may_leave(agent, signo);
    struct agent_msg msg = message(agent, leave ? AGENT_LEAVE : AGENT_STOP_JOB);
    char text[512];

    if (leave && agent->leaving) {
        return; /* it has been said */
    }
    (void)snprintf(text, sizeof(text),
                   has_several(agent) && !leave ? "%s on %s" : "%s", why,
                   agent->setup->config->nodes.name);
    agent->leaving = leave;
    msg.code = (uint32_t)code;
    msg.signo = (uint32_t)signo;
    msg.at_once = at_once;
    msg.text = text;
    rdzv_send(&agent->rdzv, &msg);
}

void agent_fail(struct agent *agent, const char *text)
{
    struct agent_msg msg = message(agent, AGENT_FAILED);
    char where[AGENT_TEXT_MAX];

    agent->own_failure = EXIT_FLAUNCH;
    (void)snprintf(where, sizeof(where),
                   has_several(agent) ? "%.1500s on %s" : "%s", text,
                   agent->setup->config->nodes.name);
    if (agent->state == AGENT_WAITING) {
        if (agent->rdzv.host != NULL) {
            msg.type = AGENT_STOP_JOB;
            msg.code = EXIT_FLAUNCH;
            msg.text = where;
            rdzv_send(&agent->rdzv, &msg);
        }
        agent_end_alone(agent, EXIT_FLAUNCH);
        return;
    }
    msg.code = EXIT_FLAUNCH;
    /* Of several nodes another one may take the place of this. */
    msg.for_good = agent->rdzv.host != NULL;
    msg.text = where;
    rdzv_send(&agent->rdzv, &msg);
    agent_event(agent, AGENT_EV_OWN_FAILURE, SIGKILL);
}

/* --- what we hear ------------------------------------------------------- */

int agent_follow(struct agent *agent)
{
    int rc = streams_attempt(&agent->streams, &agent->attempt.plan);

    if (rc < 0) {
        log_line(LOG_ERROR, "cannot follow the workers' output: %s",
                 strerror(-rc));
    }
    return rc;
}

static void take_place(struct agent *agent, const struct agent_msg *msg,
                       struct node_place *place_out)
{
    agent->round = msg->round;
    agent->first_done = false;
    agent->some_done = false;
    agent->job.round = (uint32_t)msg->round;
    agent->job.attempt = msg->restarts;
    agent->job.max_restarts = msg->max_restarts;
    (void)snprintf(agent->address, sizeof(agent->address), "%s", msg->address);
    agent->job.master_addr = agent->address;
    agent->job.master_port = (uint16_t)msg->port;
    *place_out = (struct node_place){
        .group_rank = msg->group_rank,
        .n_nodes = msg->n_nodes,
        .n_workers = agent->setup->config->n_workers,
        .base_rank = msg->base_rank,
        .world_size = msg->world_size,
        .role_base_rank = msg->role_base_rank,
        .role_world_size = msg->role_world_size,
    };
}

static void say_place(const struct agent *agent, const struct node_place *place)
{
    if (has_several(agent)) {
        log_line(LOG_INFO,
                 "%u node%s, %u workers: this is node %u, with ranks %u to %u",
                 place->n_nodes, place->n_nodes == 1 ? "" : "s",
                 place->world_size, place->group_rank, place->base_rank,
                 place->base_rank + place->n_workers - 1);
    }
}

/* The workers go first: the guard forks them while we do the rest. */
static void take_start(struct agent *agent, const struct agent_msg *msg)
{
    struct node_place place;
    struct err err = { 0 };
    int rc;

    if (agent->state != AGENT_WAITING || agent->have_end) {
        return;
    }
    if (agent->open) {
        streams_forget(&agent->streams);
    }
    attempt_end(&agent->attempt);
    take_place(agent, msg, &place);
    agent_events_round(&agent->events, &agent->job, &place);
    agent_event(agent, AGENT_EV_START, 0);
    rc = attempt_send_workers(&agent->attempt, agent->setup->config,
                              &agent->job, &place, agent->setup->files,
                              agent->setup->guard.fd, &err);
    if (rc < 0) {
        /* The guard has nothing to end, and will not say EMPTY. */
        log_line(LOG_ERROR, "%s", err.text);
        agent_fail(agent, err.text);
        agent_event(agent, AGENT_EV_GUARD_EMPTY, 0);
        return;
    }
    say_place(agent, &place);
    if (agent->open && agent_follow(agent) < 0) {
        agent_fail(agent, "cannot follow the workers' output");
    }
}

/* Another node has a reason for it. */
static void take_stop(struct agent *agent, const struct agent_msg *msg)
{
    int signo = msg->signo != 0 ? (int)msg->signo : SIGTERM;

    if (msg->round != agent->round) {
        return;
    }
    if (msg->for_good && msg->signo != 0 && agent->stop_signal == 0) {
        agent->stop_signal = signo;
    }
    if (agent->state == AGENT_RUNNING) {
        agent_say_stopping(agent, msg->text);
        agent_event(agent, AGENT_EV_STOP, signo);
    }
    if (msg->at_once) {
        agent_event(agent, AGENT_EV_SECOND_SIGNAL, signo);
    }
}

/* The last word; it is acted on when no worker is left. */
static void take_end(struct agent *agent, const struct agent_msg *msg)
{
    struct outcome outcome = agent_outcome(agent);

    if (agent->have_end) {
        return;
    }
    agent->have_end = true;
    (void)snprintf(agent->end_text, sizeof(agent->end_text), "%s", msg->text);
    if (buf_append(&agent->end_report, msg->report, strlen(msg->report) + 1) <
        0) {
        agent->end_report.len = 0;
    }
    agent->end = (struct agent_end){
        .code = (int)msg->code,
        .text = agent->end_text,
        .report = agent->end_report.len > 0
                      ? (const char *)agent->end_report.data
                      : "",
        /* Our own troubles were told when they came. */
        .said = msg->said != 0 || (msg->mine != 0 && agent->own_failure != 0),
    };
    if (agent->leaving) {
        agent->end.code = agent->round == 0
                              ? EXIT_SIGNAL_BASE + agent->stop_signal
                              : outcome_exit_code(&outcome);
        agent->end.said = true;
        agent->end.report = "";
    }
    agent_event(agent, AGENT_EV_END, 0);
}

void agent_end_alone(struct agent *agent, int code)
{
    struct agent_msg msg = message(agent, AGENT_END);

    msg.code = (uint32_t)code;
    msg.said = agent->own_failure != 0;
    take_end(agent, &msg);
}

static void on_message(const struct agent_msg *msg, void *arg)
{
    struct agent *agent = arg;

    switch (msg->type) {
    case AGENT_STATUS:
        log_line(LOG_WARN, "%s", msg->text);
        break;
    case AGENT_START:
        take_start(agent, msg);
        break;
    case AGENT_STOP:
        take_stop(agent, msg);
        break;
    case AGENT_FIRST_DONE:
        if (agent->state == AGENT_RUNNING && msg->round == agent->round) {
            agent->some_done = true;
            limits_rank_done(&agent->limits);
        }
        break;
    case AGENT_END:
        take_end(agent, msg);
        break;
    default:
        break;
    }
}

static void on_lease(uint64_t until_ns, void *arg)
{
    struct agent *agent = arg;
    const struct guard_msg msg = { .type = GUARD_LEASE, .at_ns = until_ns };

    (void)guard_link_send(&agent->link, &msg);
}

static void on_lost(const char *why, void *arg)
{
    struct agent *agent = arg;

    log_line(LOG_ERROR, "%s", why);
    if (agent->state == AGENT_WAITING) {
        agent_tell_ended(agent);
        return;
    }
    agent_event(agent, AGENT_EV_HOST_LOST, SIGKILL);
}

static void on_failed(const char *why, void *arg)
{
    struct agent *agent = arg;

    log_line(LOG_ERROR, "%s", why);
    agent_fail(agent, why);
}

const struct rdzv_events agent_rdzv_events = {
    .message = on_message,
    .lease = on_lease,
    .lost = on_lost,
    .failed = on_failed,
};
