#include "launcher/coordinator_impl.h"

#include "launcher/exit_status.h"

#include <stdio.h>
#include <string.h>

void coordinator_tell(struct coordinator *coordinator, uint32_t id,
                      unsigned what)
{
    struct member *row = coordinator_row(coordinator, id);
    bool queued = row->pending != 0;

    row->pending |= what;
    if (queued) {
        return;
    }
    row->next_pending = MEMBER_NONE;
    if (coordinator->pending_head == MEMBER_NONE) {
        coordinator->pending_head = id;
    } else {
        coordinator_row(coordinator, coordinator->pending_tail)->next_pending =
            id;
    }
    coordinator->pending_tail = id;
}

/* Tell every agent in that state, but one. */
void coordinator_tell_all(struct coordinator *coordinator,
                          enum member_state state, uint32_t but, unsigned what)
{
    uint32_t i;

    for (i = 0; i < coordinator->members.n; i++) {
        if (coordinator_row(coordinator, i)->state == state && i != but) {
            coordinator_tell(coordinator, i, what);
        }
    }
}

/* A row leaves the list of those to be told. */
void coordinator_tell_nothing(struct coordinator *coordinator, uint32_t id)
{
    uint32_t *at = &coordinator->pending_head;
    uint32_t last = MEMBER_NONE;

    if (coordinator_row(coordinator, id)->pending == 0) {
        return;
    }
    while (*at != id) {
        last = *at;
        at = &coordinator_row(coordinator, *at)->next_pending;
    }
    *at = coordinator_row(coordinator, id)->next_pending;
    if (coordinator->pending_tail == id) {
        coordinator->pending_tail = last;
    }
    coordinator_row(coordinator, id)->pending = 0;
}

/* Say the text in status to every node that is here. */
void coordinator_say(struct coordinator *coordinator)
{
    coordinator_tell_all(coordinator, MEMBER_HERE, MEMBER_NONE, TELL_STATUS);
}

void coordinator_drop(struct coordinator *coordinator, uint32_t id)
{
    coordinator_tell_nothing(coordinator, id);
    members_drop(&coordinator->members, id);
}

bool coordinator_is_cause(const struct coordinator *coordinator, uint32_t id,
                          const struct member *row)
{
    return coordinator->cause_code != 0 && coordinator->cause_member == id &&
           coordinator->cause_incarnation == row->incarnation;
}

/* --- messages out --------------------------------------------------------- */

static void fill_start(struct coordinator *coordinator,
                       const struct member *row)
{
    const struct coordinator_config *config = &coordinator->config;
    struct agent_msg *msg = &coordinator->msg;

    msg->restarts = coordinator->restarts.used;
    msg->max_restarts = coordinator->restarts.max;
    msg->changes = coordinator->changes;
    msg->group_rank = row->group_rank;
    msg->n_nodes = coordinator->n_nodes;
    msg->base_rank = row->base_rank;
    msg->world_size = coordinator->world_size;
    msg->role_base_rank = row->role_base_rank;
    msg->role_world_size = row->role_world_size;
    msg->port = config->port;
    msg->address =
        config->address[0] != '\0' ? config->address : coordinator->address;
}

static void fill_end(struct coordinator *coordinator, uint32_t id,
                     const struct member *row)
{
    struct agent_msg *msg = &coordinator->msg;

    msg->code = coordinator->end_code;
    msg->mine = coordinator_is_cause(coordinator, id, row);
    if (coordinator->cause_code != 0 &&
        coordinator->stop_code != EXIT_TIME_LIMIT) {
        msg->text = coordinator->cause;
    } else if (coordinator->reason == REASON_STOP) {
        msg->text = coordinator->why;
        msg->said = coordinator->stop_said;
    }
    if (coordinator->report.len > 0) {
        msg->report = (const char *)coordinator->report.data;
    }
}

/* The message for one thing to be told. */
static void fill(struct coordinator *coordinator, uint32_t id, unsigned what)
{
    struct member *row = coordinator_row(coordinator, id);
    struct agent_msg *msg = &coordinator->msg;

    *msg = agent_msg_init(0); /* its type follows */
    msg->incarnation = row->incarnation;
    msg->round = coordinator->round;
    switch (what) {
    case TELL_WELCOME:
        msg->type = AGENT_WELCOME;
        msg->lease_ms = coordinator->config.lease_ms;
        msg->host = coordinator_host(coordinator);
        break;
    case TELL_ACK:
        msg->type = AGENT_ACK;
        msg->seq = row->seq;
        break;
    case TELL_START:
        msg->type = AGENT_START;
        fill_start(coordinator, row);
        break;
    case TELL_FIRST_DONE:
        msg->type = AGENT_FIRST_DONE;
        break;
    case TELL_STOP:
        msg->type = AGENT_STOP;
        msg->signo =
            coordinator->reason == REASON_STOP ? coordinator->stop_signo : 0;
        msg->at_once = coordinator->stop_at_once;
        msg->for_good = coordinator->reason == REASON_STOP;
        msg->text = coordinator->why;
        break;
    case TELL_STATUS:
        msg->type = AGENT_STATUS;
        msg->text = coordinator->status;
        break;
    case TELL_REFUSED:
        msg->type = AGENT_REFUSED;
        msg->code = EXIT_FLAUNCH;
        msg->text = row->note != NULL ? row->note : "refused";
        break;
    default:
        msg->type = AGENT_END;
        fill_end(coordinator, id, row);
        break;
    }
}

bool coordinator_next(struct coordinator *coordinator, uint32_t *id_out,
                      const struct agent_msg **msg_out)
{
    uint32_t id = coordinator->pending_head;
    struct member *row;
    unsigned what;

    if (id == MEMBER_NONE) {
        return false;
    }
    row = coordinator_row(coordinator, id);
    what = row->pending & -row->pending;
    fill(coordinator, id, what);
    row->pending &= ~what;
    if (row->pending == 0) {
        coordinator->pending_head = row->next_pending;
        if (coordinator->pending_head == MEMBER_NONE) {
            coordinator->pending_tail = MEMBER_NONE;
        }
    }
    coordinator->n_messages++;
    *id_out = id;
    *msg_out = &coordinator->msg;
    return true;
}
