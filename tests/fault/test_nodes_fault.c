/*
 * What several nodes need, with the 1st, 2nd, ... n-th allocation or libuv call
 * failing: an error comes back or the work is done, nothing leaks, loops close.
 */
#include "tests/unit/listening.h"
#include "launcher/agent_door.h"
#include "launcher/agent_link.h"
#include "launcher/coordinator.h"
#include "launcher/lookup.h"
#include "tests/fault/every_fault.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- coordinator -------------------------------------------------------- */

#define NODES 3

static void drain(struct coordinator *coordinator)
{
    const struct agent_msg *msg;
    uint32_t id;

    while (coordinator_next(coordinator, &id, &msg)) {
        if (msg->type == AGENT_REFUSED) {
            assert_true(msg->text[0] != '\0');
            coordinator_lost(coordinator, id, "refused", 1);
        }
    }
}

static int come(struct coordinator *coordinator, uint32_t id)
{
    const struct agent_msg hello = { .type = AGENT_HELLO,
                                     .incarnation = id,
                                     .min_nodes = NODES,
                                     .max_nodes = NODES,
                                     .node_rank = id,
                                     .n_workers = 1,
                                     .host = "host",
                                     .run_id = id == NODES ? "other" : "job",
                                     .role = "role" };
    int rc = coordinator_take(coordinator, id, &hello, 1);

    if (rc < 0) {
        coordinator_lost(coordinator, id, "no memory", 1);
    }
    drain(coordinator);
    return rc;
}

static bool coordinator_scenario(void)
{
    const struct coordinator_config config = { .min_nodes = NODES,
                                               .max_nodes = NODES,
                                               .run_id = "job",
                                               .join_ms = 1000,
                                               .lease_ms = 10000,
                                               .address = "host" };
    struct agent_msg msg = {
        .type = AGENT_ENDED, .round = 1, .text = "text", .report = "report"
    };
    struct coordinator coordinator;
    bool ran;
    uint32_t i;

    if (coordinator_init(&coordinator, &config, 1) < 0) {
        return false;
    }
    for (i = 0; i <= NODES; i++) {
        if (i > 0 && coordinator_connected(&coordinator, "", 1) != (int64_t)i) {
            coordinator_destroy(&coordinator);
            return false;
        }
        if (come(&coordinator, i) < 0) {
            coordinator_destroy(&coordinator);
            return false;
        }
    }
    ran = coordinator.phase == COORDINATOR_RUNNING;
    for (i = 0; i < NODES; i++) {
        msg.incarnation = i;
        (void)coordinator_take(&coordinator, i, &msg, 2);
        drain(&coordinator);
    }
    assert_true(coordinator.phase >= COORDINATOR_ENDING ||
                coordinator.phase == COORDINATOR_JOINING);
    coordinator_destroy(&coordinator);
    return ran;
}

static void a_coordinator_outlives_every_fault(void **state)
{
    (void)state;
    every_fault(coordinator_scenario);
}

/* --- links
 * ---------------------------------------------------------------------- */

struct end {
    struct agent_link link;
    unsigned n_messages;
    bool closed;
};

static void on_ready(struct agent_link *link, void *arg)
{
    const struct agent_msg msg = { .type = AGENT_STATUS, .text = "hello" };

    (void)arg;
    agent_link_send(link, &msg);
}

static void on_message(struct agent_link *link, const struct agent_msg *msg,
                       void *arg)
{
    struct end *end = arg;

    if (++end->n_messages == 3) {
        agent_link_finish(link);
    } else {
        agent_link_send(link, msg);
    }
}

static void on_ended(struct agent_link *link, const char *why, void *arg)
{
    (void)arg;
    assert_true(why[0] != '\0');
    agent_link_stop(link);
}

static void on_closed(struct agent_link *link, void *arg)
{
    struct end *end = arg;

    (void)link;
    end->closed = true;
}

static const struct agent_link_events events = {
    .ready = on_ready,
    .message = on_message,
    .ended = on_ended,
    .closed = on_closed,
};

static bool link_scenario(void)
{
    static struct agent_link_buffer buffer;
    struct sockaddr_in address = { .sin_family = AF_INET };
    struct end ends[2] = { { .n_messages = 0 } };
    uv_loop_t loop;
    uint16_t port;
    int listener;
    int fd;

    assert_int_equal(listen_one(NET_LOOPBACK, 0, &listener, &port, NULL), 0);
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (uv_loop_init(&loop) < 0) {
        (void)close(listener);
        return false;
    }
    if (agent_link_connect(&ends[0].link, &loop, (struct sockaddr *)&address,
                           &buffer, &events, &ends[0]) == 0) {
        do {
            fd = accept(listener, NULL, NULL);
        } while (fd < 0 && errno == EAGAIN);
        assert_true(fd >= 0);
        (void)agent_link_adopt(&ends[1].link, &loop, fd, NULL, 0, &buffer,
                               &events, &ends[1]);
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(ends[0].closed);
    assert_int_equal(uv_loop_close(&loop), 0);
    (void)close(listener);
    return ends[0].n_messages + ends[1].n_messages >= 3;
}

/* --- door and look-up
 * --------------------------------------------------------------- */

static void somebody_came(int fd, const uint8_t *head, size_t len, void *arg)
{
    unsigned *n = arg;

    (void)head;
    (void)len;
    (*n)++;
    (void)close(fd);
}

static void nothing_more(void *arg)
{
    (void)arg;
}

static bool door_scenario(void)
{
    struct agent_door door;
    uv_loop_t loop;
    unsigned n = 0;
    int fd;

    if (uv_loop_init(&loop) < 0) {
        return false;
    }
    if (agent_door_open(&door, &loop, somebody_came, nothing_more, &n) == 0) {
        fd = dup(STDERR_FILENO);
        assert_true(fd >= 0);
        assert_int_equal(
            port_demux_hand_over(&door.demux, fd, (const uint8_t *)"F", 1), 0);
        (void)close(fd);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        agent_door_close(&door);
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    return n == 1;
}

static void looked_up(struct addrinfo *list, const struct err *err, void *arg)
{
    bool *found = arg;

    (void)err;
    *found = list != NULL;
    if (list != NULL) {
        freeaddrinfo(list);
    }
}

static bool lookup_scenario(void)
{
    struct err err = { 0 };
    struct lookup *lookup;
    uv_loop_t loop;
    bool found = false;

    if (uv_loop_init(&loop) < 0) {
        return false;
    }
    if (lookup_start(&loop, "127.0.0.1", 1, looked_up, &found, &lookup, &err) <
        0) {
        assert_true(err.text[0] != '\0');
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    return found;
}

static void connections_outlive_every_fault(void **state)
{
    (void)state;
    every_fault(link_scenario);
    every_fault(door_scenario);
    every_fault(lookup_scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_coordinator_outlives_every_fault),
        cmocka_unit_test(connections_outlive_every_fault),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
