#include "launcher/rdzv_host.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/net.h"
#include "common/store_host.h"
#include "launcher/agent_door.h"
#include "launcher/agent_link.h"
#include "launcher/coordinator.h"
#include "launcher/worker_users.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* One agent's connection. */
struct seat {
    struct agent_link link;
    struct rdzv_host *host;
    uint32_t id;       /* of the coordinator's row; MEMBER_NONE: it has left */
    struct seat *next; /* of all whose connections are not closed yet */
    struct seat **at;
};

struct rdzv_host {
    struct rdzv_setup setup;
    struct coordinator coordinator;
    uv_loop_t *loop;
    uv_timer_t timer;
    struct agent_door door;
    bool door_open;
    struct agent_link_buffer *buffer;
    struct store_host *store;
    uint64_t served_round; /* whose store it is */
    struct seat *all;
    struct seat **seats; /* by row; NULL: none */
    uint32_t n_seats;
    bool telling; /* messages are being given out */
    bool stopping;
};

/* --- the store ---------------------------------------------------------- */

static void store_complains(const char *text, void *arg)
{
    (void)arg;
    log_line(LOG_WARN, "%s", text);
}

static bool user_is_ours(uid_t uid, void *arg)
{
    (void)arg;
    return worker_users_has(uid);
}

static int store_begin(struct rdzv_host *host)
{
    const struct config *config = host->setup.config;
    struct store_setup setup = {
        .conf = config->store,
        .demux = config->nodes.max > 1 ? &host->door.demux : NULL,
        .complain = store_complains,
        .is_ours = user_is_ours,
    };
    struct err err = { 0 };
    /* The sockets stay ours, so the port is the same for all rounds;
     * connections wait in their queues meanwhile. */
    int rc = net_listeners_copy(&host->setup.listeners, &setup.listeners);

    if (rc < 0) {
        rc = err_sys(&err, rc, "cannot start the store");
    } else {
        rc = store_host_start(&setup, &host->store, &err);
    }
    if (rc < 0) {
        host->setup.events->failed(err.text, host->setup.arg);
    }
    return rc;
}

/*
 * A round gets a store that is empty: old keys would be believed. Nobody uses
 * the old one any more.
 */
static void store_renew(struct rdzv_host *host)
{
    store_host_stop(host->store);
    host->store = NULL;
    (void)store_begin(host);
}

/* --- messages out ------------------------------------------------------- */

static void time_has_come(uv_timer_t *timer);

static void arm(struct rdzv_host *host)
{
    uint64_t due_ms = coordinator_due(&host->coordinator);
    uint64_t now_ms = clock_ms();

    if (host->loop == NULL || host->stopping) {
        return;
    }
    if (due_ms == CLOCK_NEVER) {
        (void)uv_timer_stop(&host->timer);
        return;
    }
    uv_update_time(host->loop);
    (void)uv_timer_start(&host->timer, time_has_come,
                         due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

/* The agent has no row any more. */
static struct seat *seat_leave(struct rdzv_host *host, uint32_t id)
{
    struct seat *seat = host->seats[id];

    host->seats[id] = NULL;
    seat->id = MEMBER_NONE;
    return seat;
}

static void send_to_seat(struct rdzv_host *host, uint32_t id,
                         const struct agent_msg *msg)
{
    struct seat *seat = host->seats[id];
    bool last = msg->type == AGENT_REFUSED;

    if (last) {
        log_line(LOG_INFO, "refused a node: %s", msg->text);
    }
    agent_link_send(&seat->link, msg);
    if (last && seat->id != MEMBER_NONE) {
        (void)seat_leave(host, id);
        agent_link_finish(&seat->link);
        coordinator_lost(&host->coordinator, id, "it was refused", clock_ms());
    }
}

/* Give out all messages; what they cause is given out as well. */
static void tell(struct rdzv_host *host)
{
    const struct agent_msg *msg;
    uint32_t id;

    if (host->telling) {
        return;
    }
    host->telling = true;
    while (!host->stopping && coordinator_next(&host->coordinator, &id, &msg)) {
        if (msg->type == AGENT_START && msg->round != host->served_round) {
            if (host->loop != NULL && host->served_round > 0) {
                store_renew(host);
            }
            host->served_round = msg->round;
        }
        if (id == MEMBER_LOCAL) {
            host->setup.events->message(msg, host->setup.arg);
        } else {
            send_to_seat(host, id, msg);
        }
    }
    host->telling = false;
    arm(host);
}

static void time_has_come(uv_timer_t *timer)
{
    struct rdzv_host *host = timer->data;

    (void)coordinator_tick(&host->coordinator, clock_ms());
    tell(host);
}

/* --- other agents ------------------------------------------------------- */

static void link_ready(struct agent_link *link, void *arg)
{
    (void)link;
    (void)arg;
}

static void seat_lost(struct seat *seat, const char *why)
{
    struct rdzv_host *host = seat->host;
    uint32_t id = seat->id;

    agent_link_stop(&seat->link);
    if (id != MEMBER_NONE) {
        (void)seat_leave(host, id);
        coordinator_lost(&host->coordinator, id, why, clock_ms());
        tell(host);
    }
}

static void link_message(struct agent_link *link, const struct agent_msg *msg,
                         void *arg)
{
    struct seat *seat = arg;
    struct rdzv_host *host = seat->host;

    (void)link;
    if (seat->id == MEMBER_NONE) {
        return;
    }
    if (msg->type == AGENT_BYE) {
        seat_lost(seat, "it has left");
        return;
    }
    if (coordinator_take(&host->coordinator, seat->id, msg, clock_ms()) < 0) {
        seat_lost(seat, "it said what no flaunch says");
        return;
    }
    tell(host);
}

static void link_ended(struct agent_link *link, const char *why, void *arg)
{
    if (!link->ready && link->peer_version != 0) {
        log_line(LOG_WARN, "refused a node: %s", why);
    }
    seat_lost(arg, why);
}

static void link_closed(struct agent_link *link, void *arg)
{
    struct seat *seat = arg;

    (void)link;
    *seat->at = seat->next;
    if (seat->next != NULL) {
        seat->next->at = seat->at;
    }
    free(seat);
}

static const struct agent_link_events link_events = {
    .ready = link_ready,
    .message = link_message,
    .ended = link_ended,
    .closed = link_closed,
};

static int seats_grow(struct rdzv_host *host, uint32_t n)
{
    uint32_t cap = host->n_seats == 0 ? 16 : host->n_seats;
    struct seat **seats;

    if (n <= host->n_seats) {
        return 0;
    }
    while (cap < n) {
        cap *= 2;
    }
    seats = realloc(host->seats, cap * sizeof(struct seat *));
    if (seats == NULL) {
        return -ENOMEM;
    }
    memset(seats + host->n_seats, 0,
           (cap - host->n_seats) * sizeof(struct seat *));
    host->seats = seats;
    host->n_seats = cap;
    return 0;
}

/* The address of ours that a connection reached. */
static void reached_address(int fd, char *text_out, size_t size)
{
    struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
    socklen_t len = sizeof(address);

    (void)getsockname(fd, (struct sockaddr *)&address, &len);
    net_address_text((struct sockaddr *)&address, text_out, size);
}

static void agent_came(int fd, const uint8_t *head, size_t len, void *arg)
{
    struct rdzv_host *host = arg;
    struct seat *seat = calloc(1, sizeof(*seat));
    char address[64];
    int64_t id = -ENOMEM;

    if (seat != NULL) {
        reached_address(fd, address, sizeof(address));
        id = coordinator_connected(&host->coordinator, address, clock_ms());
    }
    if (id >= 0 && seats_grow(host, (uint32_t)id + 1) < 0) {
        coordinator_lost(&host->coordinator, (uint32_t)id, "no memory",
                         clock_ms());
        id = -ENOMEM;
    }
    if (id < 0) {
        (void)close(fd);
        free(seat);
        return;
    }
    seat->host = host;
    seat->id = (uint32_t)id;
    seat->next = host->all;
    seat->at = &host->all;
    if (seat->next != NULL) {
        seat->next->at = &seat->next;
    }
    host->all = seat;
    host->seats[id] = seat;
    if (agent_link_adopt(&seat->link, host->loop, fd, head, len, host->buffer,
                         &link_events, seat) < 0) {
        seat_lost(seat, "its connection broke");
    }
    arm(host);
}

/* --- this node ---------------------------------------------------------- */

struct agent_msg rdzv_hello(const struct config *config, uint64_t incarnation)
{
    const struct nodes *nodes = &config->nodes;
    struct agent_msg msg = agent_msg_init(AGENT_HELLO);

    msg.incarnation = incarnation;
    msg.min_nodes = nodes->min;
    msg.max_nodes = nodes->max;
    msg.node_rank = nodes->node_rank;
    msg.n_workers = config->n_workers;
    msg.host = nodes->name;
    msg.run_id = config->job.run_id;
    msg.role = config->job.role;
    return msg;
}

int rdzv_host_create(const struct rdzv_setup *setup,
                     struct rdzv_host **host_out)
{
    const struct config *config = setup->config;
    struct coordinator_config coordinator = {
        .min_nodes = config->nodes.min,
        .max_nodes = config->nodes.max,
        .run_id = config->job.run_id,
        .max_restarts = config->job.max_restarts,
        .backoff_ms = config->backoff_ms,
        .join_ms = config->nodes.join_ms,
        .last_call_ms = config->nodes.last_call_ms,
        .lease_ms = config->nodes.lease_ms,
        .address = config->nodes.max == 1 ? "127.0.0.1" : config->nodes.address,
        .port = setup->listeners.port,
    };
    struct rdzv_host *host = calloc(1, sizeof(*host));
    int rc;

    if (host == NULL) {
        return -ENOMEM;
    }
    host->setup = *setup;
    rc = coordinator_init(&host->coordinator, &coordinator, clock_ms());
    if (rc < 0) {
        free(host);
        return rc;
    }
    *host_out = host;
    return 0;
}

void rdzv_host_begin(struct rdzv_host *host)
{
    struct agent_msg hello = rdzv_hello(host->setup.config, 0);

    if (coordinator_take(&host->coordinator, MEMBER_LOCAL, &hello, clock_ms()) <
        0) {
        host->setup.events->failed("there is no memory to begin",
                                   host->setup.arg);
    }
    tell(host);
}

static void door_closed(void *arg)
{
    (void)arg;
}

int rdzv_host_open(struct rdzv_host *host, uv_loop_t *loop)
{
    int rc = 0;

    host->loop = loop;
    (void)uv_timer_init(loop, &host->timer); /* cannot fail */
    host->timer.data = host;
    if (host->setup.config->nodes.max > 1) {
        host->buffer = malloc(sizeof(*host->buffer));
        rc = host->buffer != NULL ? 0 : -ENOMEM;
        if (rc == 0) {
            rc = agent_door_open(&host->door, loop, agent_came, door_closed,
                                 host);
        }
        host->door_open = rc == 0;
    }
    if (rc < 0) {
        host->setup.events->failed("cannot listen for other nodes",
                                   host->setup.arg);
        return rc;
    }
    rc = store_begin(host);
    arm(host);
    return rc;
}

void rdzv_host_send(struct rdzv_host *host, const struct agent_msg *msg)
{
    (void)coordinator_take(&host->coordinator, MEMBER_LOCAL, msg, clock_ms());
    tell(host);
}

void rdzv_host_say_waiting(struct rdzv_host *host)
{
    store_host_say_waiting(host->store);
}

void rdzv_host_stop(struct rdzv_host *host)
{
    struct seat *seat;

    if (host->stopping) {
        return;
    }
    host->stopping = true;
    if (host->loop == NULL) {
        return;
    }
    uv_close((uv_handle_t *)&host->timer, NULL);
    store_host_stop(host->store);
    host->store = NULL;
    if (host->door_open) {
        agent_door_close(&host->door);
    }
    for (seat = host->all; seat != NULL; seat = seat->next) {
        seat->id = MEMBER_NONE;
        agent_link_stop(&seat->link);
    }
}

void rdzv_host_destroy(struct rdzv_host *host)
{
    if (host == NULL) {
        return;
    }
    if (host->setup.config->nodes.max > 1) {
        log_line(LOG_DEBUG, "coordinator: %" PRIu64 " messages",
                 host->coordinator.n_messages);
    }
    store_host_stop(host->store);
    coordinator_destroy(&host->coordinator);
    free(host->seats);
    free(host->buffer);
    free(host);
}
