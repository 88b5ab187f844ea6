#include "launcher/coordinator_impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void coordinator_refuse(struct coordinator *coordinator, uint32_t id,
                        const char *format, ...)
{
    struct member *row = coordinator_row(coordinator, id);
    char text[AGENT_TEXT_MAX];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    free(row->note);
    row->note = strdup(text);
    members_set(&coordinator->members, id, MEMBER_REFUSED);
    coordinator_tell(coordinator, id, TELL_REFUSED);
}

const char *coordinator_host(struct coordinator *coordinator)
{
    return coordinator_row(coordinator, MEMBER_LOCAL)->host;
}

/* "--nnodes=2:4" */
static void nnodes_text(uint32_t min, uint32_t max, char *text_out, size_t size)
{
    if (min == max) {
        (void)snprintf(text_out, size, "--nnodes=%u", max);
    } else {
        (void)snprintf(text_out, size, "--nnodes=%u:%u", min, max);
    }
}

/* Whether it belongs to this job at all; it is refused where not. */
static bool belongs(struct coordinator *coordinator, uint32_t id)
{
    const struct coordinator_config *config = &coordinator->config;
    const struct member *row = coordinator_row(coordinator, id);
    char theirs[48];
    char ours[48];

    if (strcmp(row->run_id, config->run_id) != 0) {
        coordinator_refuse(
            coordinator, id,
            "this is a node of job %.400s (--rdzv-id, on %s), and at %s "
            "runs job %.400s",
            row->run_id, row->host, coordinator_host(coordinator),
            config->run_id);
        return false;
    }
    if (row->min_nodes != config->min_nodes ||
        row->max_nodes != config->max_nodes) {
        nnodes_text(row->min_nodes, row->max_nodes, theirs, sizeof(theirs));
        nnodes_text(config->min_nodes, config->max_nodes, ours, sizeof(ours));
        coordinator_refuse(coordinator, id,
                           "%s was started with %s, and %s with %s", row->host,
                           theirs, coordinator_host(coordinator), ours);
        return false;
    }
    if (row->asked_rank == 0) {
        coordinator_refuse(
            coordinator, id,
            "%s has node rank 0, and so has %s, which hosts the job: give "
            "each node its own --node-rank",
            row->host, coordinator_host(coordinator));
        return false;
    }
    if (row->asked_rank != AGENT_NO_RANK &&
        row->asked_rank >= config->max_nodes) {
        coordinator_refuse(coordinator, id,
                           "%s has node rank %u, and the job %u nodes",
                           row->host, row->asked_rank, config->max_nodes);
        return false;
    }
    return true;
}

static bool somebody_is_quiet(struct coordinator *coordinator)
{
    uint32_t i;

    for (i = 0; i < coordinator->members.n; i++) {
        if (coordinator_row(coordinator, i)->quiet) {
            return true;
        }
    }
    return false;
}

/*
 * Whether there is a place: true; or the row is refused, or held until it
 * shows whether the one whose place it wants is dead.
 */
static bool has_place(struct coordinator *coordinator, uint32_t id)
{
    const struct coordinator_config *config = &coordinator->config;
    struct member *row = coordinator_row(coordinator, id);
    uint32_t owner = members_owner(&coordinator->members, row->asked_rank);
    bool full = config->min_nodes == config->max_nodes &&
                coordinator->members.n_in >= config->max_nodes;

    if (owner == MEMBER_NONE && !full) {
        return true;
    }
    if (owner != MEMBER_NONE ? coordinator_row(coordinator, owner)->quiet
                             : somebody_is_quiet(coordinator)) {
        members_set(&coordinator->members, id, MEMBER_HELD);
        return false;
    }
    if (owner != MEMBER_NONE) {
        coordinator_refuse(
            coordinator, id,
            "%s has node rank %u, and so has %s: give each node its own "
            "--node-rank",
            row->host, row->asked_rank,
            coordinator_row(coordinator, owner)->host);
    } else {
        coordinator_refuse(coordinator, id,
                           "the job has its %u nodes: %s is one too many",
                           config->max_nodes, row->host);
    }
    return false;
}

/* A running job with room makes a round with the one who came. */
static void make_room(struct coordinator *coordinator, uint32_t id)
{
    char name[AGENT_HOST_MAX + 32];

    if (coordinator->phase == COORDINATOR_RUNNING &&
        coordinator->n_nodes < coordinator->config.max_nodes &&
        !coordinator->some_done) {
        member_name(coordinator_row(coordinator, id), name, sizeof(name));
        (void)snprintf(coordinator->why, sizeof(coordinator->why),
                       "%s joins: a new round", name);
        coordinator_round_stop(coordinator, REASON_CHANGE, MEMBER_NONE);
    }
}

/* Give it its place, if there is one; also asked again while it is held. */
void coordinator_admit(struct coordinator *coordinator, uint32_t id,
                       uint64_t now_ms)
{
    if (id != MEMBER_LOCAL &&
        (!belongs(coordinator, id) || !has_place(coordinator, id))) {
        return;
    }
    members_set(&coordinator->members, id, MEMBER_HERE);
    coordinator_tell(coordinator, id, TELL_WELCOME);
    make_room(coordinator, id);
    coordinator_begin_maybe(coordinator, now_ms);
}

int coordinator_take_hello(struct coordinator *coordinator, uint32_t id,
                           const struct agent_msg *msg, uint64_t now_ms)
{
    struct member *row = coordinator_row(coordinator, id);

    row->incarnation = msg->incarnation;
    row->asked_rank = msg->node_rank;
    row->min_nodes = msg->min_nodes;
    row->max_nodes = msg->max_nodes;
    row->n_workers = msg->n_workers;
    row->host = strdup(msg->host);
    row->run_id = strdup(msg->run_id);
    row->role = strdup(msg->role);
    if (row->host == NULL || row->run_id == NULL || row->role == NULL) {
        return -ENOMEM;
    }
    if (msg->n_workers == 0 || msg->n_workers > AGENT_WORKERS_MAX) {
        return -EPROTO;
    }
    if (coordinator->phase >= COORDINATOR_ENDING) {
        members_set(&coordinator->members, id, MEMBER_OVER);
        coordinator_tell(coordinator, id, TELL_END);
        return 0;
    }
    coordinator_admit(coordinator, id, now_ms);
    return 0;
}
