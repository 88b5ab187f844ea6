#include "launcher/coordinator.h"

#include "common/clock.h"
#include "launcher/coordinator_impl.h"
#include "launcher/exit_status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the end -------------------------------------------------------------- */

static void end_local_maybe(struct coordinator *coordinator)
{
    if (coordinator->phase == COORDINATOR_ENDING &&
        coordinator->members.n_over == 0) {
        coordinator->phase = COORDINATOR_ENDED;
        coordinator_tell(coordinator, MEMBER_LOCAL, TELL_END);
    }
}

/* After a stop: a code that a worker chose itself wins over the signal. */
static uint32_t stopped_code(const struct coordinator *coordinator)
{
    if (coordinator->own_code != 0) {
        return coordinator->own_code;
    }
    if (coordinator->stop_signo != 0 && coordinator->all_zero) {
        return 0;
    }
    return coordinator->stop_code;
}

static uint32_t final_code(const struct coordinator *coordinator)
{
    if (coordinator->stop_code == EXIT_TIME_LIMIT) {
        return EXIT_TIME_LIMIT;
    }
    if (coordinator->cause_code != 0) {
        return coordinator->cause_code;
    }
    return coordinator->reason == REASON_STOP ? stopped_code(coordinator) : 0;
}

static void job_end(struct coordinator *coordinator, uint64_t now_ms)
{
    uint32_t i;

    coordinator->phase = COORDINATOR_ENDING;
    coordinator->end_code = final_code(coordinator);
    if (buf_append_u8(&coordinator->report, '\0') < 0) {
        coordinator->report.len = 0; /* the sentence must do */
    }
    coordinator->end_by_ms = now_ms + coordinator->config.lease_ms;
    for (i = MEMBER_LOCAL + 1; i < coordinator->members.n; i++) {
        enum member_state state = coordinator_row(coordinator, i)->state;

        if (state == MEMBER_HERE || state == MEMBER_HELD) {
            members_set(&coordinator->members, i, MEMBER_OVER);
            coordinator_tell(coordinator, i, TELL_END);
        }
    }
    end_local_maybe(coordinator);
}

/* The job ends without a worker's doing; nobody runs. */
static void job_end_because(struct coordinator *coordinator, uint32_t code,
                            uint64_t now_ms)
{
    coordinator->reason = REASON_STOP;
    coordinator->stop_code = code;
    coordinator->stop_signo = 0;
    job_end(coordinator, now_ms);
}

/* --- joining -------------------------------------------------------------- */

static void joining_begin(struct coordinator *coordinator, uint64_t now_ms)
{
    coordinator->phase = COORDINATOR_JOINING;
    coordinator->reason = REASON_NONE;
    coordinator->join_by_ms = now_ms + coordinator->config.join_ms;
    coordinator->last_call_ms = 0;
    coordinator->say_ms = now_ms + COORDINATOR_SAY_MS;
}

static void round_begin(struct coordinator *coordinator, uint64_t now_ms)
{
    bool fixed = coordinator->config.min_nodes == coordinator->config.max_nodes;
    uint32_t n_nodes;
    uint32_t world_size;

    if (members_seal(&coordinator->members, fixed, &n_nodes, &world_size) < 0) {
        (void)snprintf(coordinator->why, sizeof(coordinator->why),
                       "no memory to begin a round");
        job_end_because(coordinator, EXIT_FLAUNCH, now_ms);
        return;
    }
    coordinator->phase = COORDINATOR_RUNNING;
    coordinator->round++;
    coordinator->n_nodes = n_nodes;
    coordinator->world_size = world_size;
    coordinator->began_ms = now_ms;
    coordinator->look_ms = now_ms;
    coordinator->some_done = false;
    coordinator->first_done = false;
    coordinator->for_good = false;
    coordinator->cause_member = MEMBER_NONE;
    coordinator->cause_code = 0;
    coordinator->cause[0] = '\0';
    coordinator->report.len = 0;
    coordinator->own_code = 0;
    coordinator->all_zero = true;
    coordinator->n_stopped = 0;
    coordinator->n_done = 0;
    coordinator->n_failed = 0;
    coordinator_tell_all(coordinator, MEMBER_RUNNING, MEMBER_NONE, TELL_START);
}

/* Begin a round if there is nothing left to wait for. */
void coordinator_begin_maybe(struct coordinator *coordinator, uint64_t now_ms)
{
    const struct coordinator_config *config = &coordinator->config;
    uint32_t n_here = coordinator->members.n_here;

    if (coordinator->phase != COORDINATOR_JOINING ||
        n_here < config->min_nodes) {
        coordinator->last_call_ms = 0;
        return;
    }
    if (coordinator->last_call_ms == 0) {
        /* Later rounds do not wait: who comes starts another one. */
        coordinator->last_call_ms =
            now_ms + (coordinator->round == 0 ? config->last_call_ms : 0);
    }
    if (now_ms >= coordinator->earliest_ms &&
        (n_here >= config->max_nodes || now_ms >= coordinator->last_call_ms)) {
        round_begin(coordinator, now_ms);
    }
}

static void join_time_over(struct coordinator *coordinator, uint64_t now_ms)
{
    char here[AGENT_TEXT_MAX - 128];

    members_roll_call(&coordinator->members, coordinator->config.min_nodes,
                      here, sizeof(here));
    (void)snprintf(coordinator->why, sizeof(coordinator->why),
                   "not all nodes have joined in %g s: %s",
                   (double)coordinator->config.join_ms / 1000, here);
    job_end_because(coordinator, EXIT_TIME_LIMIT, now_ms);
}

static void say_roll_call(struct coordinator *coordinator, uint64_t now_ms)
{
    char here[AGENT_TEXT_MAX - 128];

    members_roll_call(&coordinator->members, coordinator->config.min_nodes,
                      here, sizeof(here));
    (void)snprintf(coordinator->status, sizeof(coordinator->status),
                   "%s; %.0f s left", here,
                   (double)(coordinator->join_by_ms - now_ms) / 1000);
    coordinator_say(coordinator);
}

/* --- a round stops -------------------------------------------------------- */

/*
 * The others of this job, for the report of the node where it went wrong, which
 * tells of its own.
 */
static void describe_others(struct coordinator *coordinator)
{
    static const struct {
        const char *what;
        size_t offset;
    } parts[] = {
        { "also failed", offsetof(struct coordinator, n_failed) },
        { "stopped by flaunch", offsetof(struct coordinator, n_stopped) },
        { "already done", offsetof(struct coordinator, n_done) },
    };
    char line[160] = "  on other nodes:";
    size_t len = strlen(line);
    bool any = false;
    size_t i;

    if (coordinator->cause_code == 0) {
        return;
    }
    for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        uint32_t n;

        memcpy(&n, (char *)coordinator + parts[i].offset, sizeof(n));
        if (n > 0) {
            len += (size_t)snprintf(line + len, sizeof(line) - len, "%s %u %s",
                                    any ? "," : "", n, parts[i].what);
            any = true;
        }
    }
    line[len++] = '\n';
    if (any) {
        (void)buf_append(&coordinator->report, line, len); /* or do without */
    }
}

/* It failed, and may be started again: true where it is. */
static bool restart_take(struct coordinator *coordinator, uint64_t now_ms)
{
    uint64_t wait_ms;

    if (coordinator->for_good ||
        !restarts_take(&coordinator->restarts, now_ms - coordinator->began_ms,
                       &wait_ms)) {
        return false;
    }
    coordinator->changes = 0;
    if (now_ms + wait_ms > coordinator->earliest_ms) {
        coordinator->earliest_ms = now_ms + wait_ms;
    }
    if (coordinator->earliest_ms > now_ms) {
        wait_ms = coordinator->earliest_ms - now_ms;
        wait_ms = (wait_ms + 99) / 100 * 100; /* for people */
    }
    (void)snprintf(coordinator->status, sizeof(coordinator->status),
                   "%.1900s; restart %u of %u in %g s", coordinator->cause,
                   coordinator->restarts.used, coordinator->restarts.max,
                   (double)wait_ms / 1000);
    coordinator_say(coordinator);
    return true;
}

/* Nothing of the round is left. */
static void round_over(struct coordinator *coordinator, uint64_t now_ms)
{
    uint32_t i;

    for (i = 0; i < coordinator->members.n; i++) {
        if (coordinator_row(coordinator, i)->state == MEMBER_ENDED) {
            members_set(&coordinator->members, i, MEMBER_HERE);
        }
    }
    if (coordinator->reason == REASON_CHANGE) {
        coordinator->changes++;
    } else if (coordinator->reason != REASON_FAILURE ||
               !restart_take(coordinator, now_ms)) {
        describe_others(coordinator);
        job_end(coordinator, now_ms);
        return;
    }
    joining_begin(coordinator, now_ms);
    coordinator_begin_maybe(coordinator, now_ms);
}

static void round_over_maybe(struct coordinator *coordinator, uint64_t now_ms)
{
    if ((coordinator->phase == COORDINATOR_RUNNING ||
         coordinator->phase == COORDINATOR_STOPPING) &&
        coordinator->members.n_running == 0) {
        round_over(coordinator, now_ms);
    }
}

/* The round stops on all nodes but one, which knows. */
void coordinator_round_stop(struct coordinator *coordinator,
                            enum coordinator_reason reason, uint32_t but)
{
    if (reason > coordinator->reason) {
        coordinator->reason = reason;
    }
    if (coordinator->phase == COORDINATOR_RUNNING) {
        coordinator->phase = COORDINATOR_STOPPING;
        coordinator_tell_all(coordinator, MEMBER_RUNNING, but, TELL_STOP);
    }
}

/* What went wrong first counts; member may be NONE. */
static void cause_set(struct coordinator *coordinator, uint32_t id,
                      uint32_t code, const char *text)
{
    if (coordinator->cause_code != 0) {
        return;
    }
    coordinator->cause_member = id;
    coordinator->cause_incarnation =
        coordinator_row(coordinator, id)->incarnation;
    coordinator->cause_code = code != 0 ? code : EXIT_FLAUNCH;
    (void)snprintf(coordinator->cause, sizeof(coordinator->cause), "%s", text);
    if (coordinator->reason != REASON_STOP) {
        (void)snprintf(coordinator->why, sizeof(coordinator->why), "%s", text);
    }
}

/* --- what agents say ------------------------------------------------------ */

static void take_failed(struct coordinator *coordinator, uint32_t id,
                        const struct agent_msg *msg)
{
    coordinator->for_good = coordinator->for_good || msg->for_good != 0;
    cause_set(coordinator, id, msg->code, msg->text);
    coordinator_round_stop(coordinator, REASON_FAILURE, id);
}

/* What the node where it went wrong tells of it, now that it knows all. */
static void cause_complete(struct coordinator *coordinator,
                           const struct agent_msg *msg)
{
    if (msg->text[0] != '\0') {
        (void)snprintf(coordinator->cause, sizeof(coordinator->cause), "%s",
                       msg->text);
    }
    coordinator->report.len = 0;
    if (buf_append(&coordinator->report, msg->report, strlen(msg->report)) <
        0) {
        coordinator->report.len = 0;
    }
}

static void take_ended(struct coordinator *coordinator, uint32_t id,
                       const struct agent_msg *msg, uint64_t now_ms)
{
    struct member *row = coordinator_row(coordinator, id);

    if (coordinator_is_cause(coordinator, id, row)) {
        cause_complete(coordinator, msg);
    } else {
        coordinator->n_stopped += msg->n_stopped;
        coordinator->n_done += msg->n_done;
        coordinator->n_failed += msg->n_failed;
    }
    if (msg->code != 0) {
        coordinator->all_zero = false;
        if (msg->code != coordinator->stop_code && coordinator->own_code == 0) {
            coordinator->own_code = msg->code;
        }
    }
    coordinator->some_done =
        coordinator->some_done || coordinator->phase == COORDINATOR_RUNNING;
    if (row->leaving) {
        members_set(&coordinator->members, id, MEMBER_OVER);
        coordinator_tell(coordinator, id, TELL_END);
    } else {
        members_set(&coordinator->members, id, MEMBER_ENDED);
    }
    round_over_maybe(coordinator, now_ms);
}

static void take_stop_job(struct coordinator *coordinator, uint32_t id,
                          const struct agent_msg *msg, uint64_t now_ms)
{
    if (coordinator->phase >= COORDINATOR_ENDING) {
        return;
    }
    coordinator->stop_at_once = coordinator->stop_at_once || msg->at_once != 0;
    if (coordinator->stop_code == 0) {
        coordinator->stop_code = msg->code != 0 ? msg->code : EXIT_FLAUNCH;
        coordinator->stop_signo = msg->signo;
        (void)snprintf(coordinator->why, sizeof(coordinator->why), "%s",
                       msg->text);
    }
    if (coordinator->phase == COORDINATOR_JOINING) {
        coordinator->reason = REASON_STOP;
        coordinator->all_zero = false; /* no worker runs */
        job_end(coordinator, now_ms);
        coordinator->end_by_ms = now_ms + COORDINATOR_LEAVE_MS;
        return;
    }
    if (coordinator->phase == COORDINATOR_STOPPING) {
        /* They are told the signal as well, and to kill at once. */
        coordinator_tell_all(coordinator, MEMBER_RUNNING, id, TELL_STOP);
    }
    coordinator->stop_said = true;
    coordinator_round_stop(coordinator, REASON_STOP, id);
}

static void take_leave(struct coordinator *coordinator, uint32_t id,
                       const struct agent_msg *msg, uint64_t now_ms)
{
    struct member *row = coordinator_row(coordinator, id);
    char name[AGENT_HOST_MAX + 32];

    member_name(row, name, sizeof(name));
    row->leaving = true;
    if (row->state == MEMBER_RUNNING) {
        (void)snprintf(coordinator->why, sizeof(coordinator->why),
                       "%s leaves (%s)", name, msg->text);
        coordinator_round_stop(coordinator, REASON_CHANGE, id);
        return;
    }
    (void)snprintf(coordinator->status, sizeof(coordinator->status),
                   "%s leaves (%s)", name, msg->text);
    members_set(&coordinator->members, id, MEMBER_OVER);
    coordinator_tell(coordinator, id, TELL_END);
    coordinator_say(coordinator);
    coordinator_begin_maybe(coordinator,
                            now_ms); /* its last call may be over */
}

/* Of the round that is running, from somebody who takes part. */
static bool is_current(const struct coordinator *coordinator,
                       const struct member *row, const struct agent_msg *msg)
{
    return row->state == MEMBER_RUNNING && msg->round == coordinator->round;
}

static void take_first_done(struct coordinator *coordinator, uint32_t id)
{
    if (!coordinator->first_done) {
        coordinator->first_done = true;
        coordinator_tell_all(coordinator, MEMBER_RUNNING, id, TELL_FIRST_DONE);
    }
}

static void take_from_member(struct coordinator *coordinator, uint32_t id,
                             const struct agent_msg *msg, uint64_t now_ms)
{
    struct member *row = coordinator_row(coordinator, id);
    bool current = is_current(coordinator, row, msg);
    bool in = row->state == MEMBER_HERE || row->state == MEMBER_RUNNING ||
              row->state == MEMBER_ENDED;

    switch (msg->type) {
    case AGENT_HEARTBEAT:
        row->seq = msg->seq;
        coordinator_tell(coordinator, id, TELL_ACK);
        break;
    case AGENT_FAILED:
        if (current) {
            take_failed(coordinator, id, msg);
        }
        break;
    case AGENT_FIRST_DONE:
        if (current) {
            take_first_done(coordinator, id);
        }
        break;
    case AGENT_ENDED:
        if (current) {
            take_ended(coordinator, id, msg, now_ms);
        }
        break;
    case AGENT_STOP_JOB:
        if (in) {
            take_stop_job(coordinator, id, msg, now_ms);
        }
        break;
    case AGENT_LEAVE:
        if (in && id != MEMBER_LOCAL) {
            take_leave(coordinator, id, msg, now_ms);
        }
        break;
    case AGENT_BYE:
        coordinator_lost(coordinator, id, "it has left", now_ms);
        break;
    default:
        break;
    }
}

int coordinator_take(struct coordinator *coordinator, uint32_t id,
                     const struct agent_msg *msg, uint64_t now_ms)
{
    struct member *row = coordinator_row(coordinator, id);

    row->heard_ms = now_ms;
    switch (row->state) {
    case MEMBER_FREE:
    case MEMBER_REFUSED:
        return 0; /* it goes */
    case MEMBER_NEW:
        return msg->type == AGENT_HELLO
                   ? coordinator_take_hello(coordinator, id, msg, now_ms)
                   : -EPROTO;
    default:
        break;
    }
    if (msg->type >= AGENT_WELCOME || msg->type == AGENT_HELLO) {
        return -EPROTO;
    }
    if (msg->incarnation == row->incarnation) {
        row->quiet = false;
        take_from_member(coordinator, id, msg, now_ms);
    }
    return 0;
}

int64_t coordinator_connected(struct coordinator *coordinator,
                              const char *address, uint64_t now_ms)
{
    if (coordinator->members.n_new >= COORDINATOR_NEW_MAX) {
        return -EBUSY;
    }
    if (coordinator->address[0] == '\0') {
        (void)snprintf(coordinator->address, sizeof(coordinator->address), "%s",
                       address);
    }
    if (coordinator->members.n_used == 1) {
        coordinator->look_ms = now_ms; /* nobody was looked at before */
    }
    return members_add(&coordinator->members, now_ms);
}

/* A node of the round is gone. */
static void lose_running(struct coordinator *coordinator, uint32_t id,
                         const char *why, uint64_t now_ms)
{
    struct member *row = coordinator_row(coordinator, id);
    char text[AGENT_TEXT_MAX];
    char name[AGENT_HOST_MAX + 32];

    if (coordinator->earliest_ms < now_ms + COORDINATOR_FENCE_MS) {
        coordinator->earliest_ms = now_ms + COORDINATOR_FENCE_MS;
    }
    if (row->leaving) {
        return;
    }
    if (coordinator->reason == REASON_STOP) {
        coordinator->all_zero = false; /* it was stopped like the others */
        return;
    }
    member_name(row, name, sizeof(name));
    (void)snprintf(text, sizeof(text), "lost %s: %s", name, why);
    cause_set(coordinator, id, EXIT_FLAUNCH, text);
    coordinator_round_stop(coordinator, REASON_FAILURE, id);
}

/* Take a row out of the job; its number stays taken while it is told why. */
static void lose(struct coordinator *coordinator, uint32_t id, const char *why,
                 uint64_t now_ms)
{
    struct member *row = coordinator_row(coordinator, id);
    char name[AGENT_HOST_MAX + 32];

    switch (row->state) {
    case MEMBER_RUNNING:
    case MEMBER_ENDED:
        lose_running(coordinator, id, why, now_ms);
        break;
    case MEMBER_HERE:
        /* When many leave the roll call tells it; this is for one. */
        if (coordinator->phase == COORDINATOR_JOINING &&
            now_ms >= coordinator->said_lost_ms + COORDINATOR_LOST_MS) {
            coordinator->said_lost_ms = now_ms;
            member_name(row, name, sizeof(name));
            (void)snprintf(coordinator->status, sizeof(coordinator->status),
                           "lost %s: %s", name, why);
            coordinator_say(coordinator);
        }
        break;
    default:
        break;
    }
    coordinator_tell_nothing(coordinator, id);
    members_set(&coordinator->members, id, MEMBER_REFUSED);
}

void coordinator_gone(struct coordinator *coordinator, uint32_t id,
                      const char *why, uint64_t now_ms)
{
    lose(coordinator, id, why, now_ms);
    round_over_maybe(coordinator, now_ms);
    coordinator_begin_maybe(coordinator, now_ms);
    end_local_maybe(coordinator);
}

void coordinator_lost(struct coordinator *coordinator, uint32_t id,
                      const char *why, uint64_t now_ms)
{
    if (id != MEMBER_LOCAL &&
        coordinator_row(coordinator, id)->state != MEMBER_FREE) {
        coordinator_gone(coordinator, id, why, now_ms);
        coordinator_drop(coordinator, id);
    }
}

/* --- time ----------------------------------------------------------------- */

uint64_t coordinator_due(const struct coordinator *coordinator)
{
    uint64_t due_ms = CLOCK_NEVER;

    if (coordinator->phase == COORDINATOR_ENDED) {
        return CLOCK_NEVER;
    }
    if (coordinator_watches(coordinator)) {
        due_ms = coordinator->look_ms + COORDINATOR_LOOK_MS;
    }
    if (coordinator->phase == COORDINATOR_ENDING) {
        due_ms = clock_earlier(due_ms, coordinator->end_by_ms);
    }
    if (coordinator->phase == COORDINATOR_JOINING) {
        due_ms = clock_earlier(due_ms, coordinator->join_by_ms);
        due_ms = clock_earlier(due_ms, coordinator->say_ms);
        if (coordinator->last_call_ms != 0) {
            due_ms = clock_earlier(due_ms, coordinator->last_call_ms >
                                                   coordinator->earliest_ms
                                               ? coordinator->last_call_ms
                                               : coordinator->earliest_ms);
        }
    }
    return due_ms;
}

/* Whoever has not confirmed END by now will not. */
static void end_of_patience(struct coordinator *coordinator)
{
    uint32_t i;

    for (i = MEMBER_LOCAL + 1; i < coordinator->members.n; i++) {
        if (coordinator_row(coordinator, i)->state == MEMBER_OVER) {
            members_set(&coordinator->members, i, MEMBER_REFUSED);
        }
    }
    end_local_maybe(coordinator);
}

uint64_t coordinator_tick(struct coordinator *coordinator, uint64_t now_ms)
{
    if (coordinator_watches(coordinator) &&
        now_ms >= coordinator->look_ms + COORDINATOR_LOOK_MS) {
        coordinator_look(coordinator, now_ms);
    }
    if (coordinator->phase == COORDINATOR_JOINING) {
        coordinator_begin_maybe(coordinator, now_ms);
    }
    if (coordinator->phase == COORDINATOR_JOINING &&
        now_ms >= coordinator->join_by_ms) {
        join_time_over(coordinator, now_ms);
    }
    if (coordinator->phase == COORDINATOR_JOINING &&
        now_ms >= coordinator->say_ms) {
        coordinator->say_ms = now_ms + COORDINATOR_SAY_MS;
        if (coordinator->members.n_here < coordinator->config.min_nodes) {
            say_roll_call(coordinator, now_ms);
        }
    }
    if (coordinator->phase == COORDINATOR_ENDING &&
        now_ms >= coordinator->end_by_ms) {
        end_of_patience(coordinator);
    }
    return coordinator_due(coordinator);
}

int coordinator_init(struct coordinator *coordinator,
                     const struct coordinator_config *config, uint64_t now_ms)
{
    int64_t id;
    int rc;

    *coordinator = (struct coordinator){ .config = *config,
                                         .look_ms = now_ms,
                                         .cause_member = MEMBER_NONE,
                                         .pending_head = MEMBER_NONE,
                                         .pending_tail = MEMBER_NONE };
    restarts_init(&coordinator->restarts, config->max_restarts,
                  config->backoff_ms);
    rc = members_init(&coordinator->members, config->max_nodes);
    if (rc < 0) {
        return rc;
    }
    id = members_add(&coordinator->members, now_ms);
    if (id < 0) {
        members_destroy(&coordinator->members);
        return (int)id;
    }
    joining_begin(coordinator, now_ms);
    return 0;
}

void coordinator_destroy(struct coordinator *coordinator)
{
    members_destroy(&coordinator->members);
    buf_destroy(&coordinator->report);
}
