/*
 * The coordinator alone with n simulated agents: all join, all send heartbeats
 * for a while, one fails, all stop, start again and end. Prints the time and
 * the messages of each step per agent.
 */
#include "common/clock.h"
#include "launcher/coordinator.h"

#include <stdio.h>
#include <stdlib.h>

#define BEATS 30

struct sim {
    struct coordinator coordinator;
    uint32_t n;
    uint64_t now_ms;
    uint64_t n_in;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "coordinator_sim: %s\n", what);
    exit(1);
}

/* Take all messages out, as links would. */
static void drain(struct sim *sim, struct buf *out)
{
    const struct agent_msg *msg;
    uint32_t id;

    while (coordinator_next(&sim->coordinator, &id, &msg)) {
        out->len = 0;
        if (agent_msg_encode(out, msg) < 0) {
            die("no memory");
        }
    }
}

static void say(struct sim *sim, uint32_t id, struct agent_msg msg)
{
    msg.incarnation = sim->coordinator.members.rows[id].incarnation;
    msg.round = sim->coordinator.round;
    msg.text = "text";
    msg.report = "";
    sim->n_in++;
    if (coordinator_take(&sim->coordinator, id, &msg, sim->now_ms) < 0) {
        die("a message was refused");
    }
}

static void hello(struct sim *sim, uint32_t id)
{
    char host[32];
    const struct agent_msg msg = { .type = AGENT_HELLO,
                                   .incarnation = id,
                                   .min_nodes = sim->n,
                                   .max_nodes = sim->n,
                                   .node_rank = id,
                                   .n_workers = 8,
                                   .host = host,
                                   .run_id = "bench",
                                   .role = "default" };

    (void)snprintf(host, sizeof(host), "node%u", id);
    sim->n_in++;
    if (coordinator_take(&sim->coordinator, id, &msg, sim->now_ms) < 0) {
        die("HELLO was refused");
    }
}

static void join_all(struct sim *sim, struct buf *out)
{
    uint32_t i;

    hello(sim, MEMBER_LOCAL);
    for (i = 1; i < sim->n; i++) {
        if (coordinator_connected(&sim->coordinator, "10.0.0.1", sim->now_ms) !=
            (int64_t)i) {
            die("a connection was refused");
        }
        hello(sim, i);
        drain(sim, out);
    }
    if (sim->coordinator.phase != COORDINATOR_RUNNING) {
        die("the round has not begun");
    }
}

/* A second of each agent's life, and two looks at them. */
static void beat_all(struct sim *sim, struct buf *out)
{
    int beat;
    uint32_t i;

    for (beat = 0; beat < BEATS; beat++) {
        for (i = 1; i < sim->n; i++) {
            say(sim, i,
                (struct agent_msg){ .type = AGENT_HEARTBEAT,
                                    .seq = (uint64_t)beat });
            drain(sim, out);
        }
        for (i = 0; i < 2; i++) {
            sim->now_ms += COORDINATOR_LOOK_MS;
            (void)coordinator_tick(&sim->coordinator, sim->now_ms);
            drain(sim, out);
        }
    }
}

static void end_round(struct sim *sim, struct buf *out, uint32_t code)
{
    uint32_t i;

    if (code != 0) {
        say(sim, sim->n / 2,
            (struct agent_msg){ .type = AGENT_FAILED, .code = code });
        drain(sim, out);
    }
    for (i = 0; i < sim->n; i++) {
        say(sim, i, (struct agent_msg){ .type = AGENT_ENDED, .code = code });
        drain(sim, out);
    }
}

static void leave_all(struct sim *sim, struct buf *out)
{
    uint32_t i;

    for (i = 1; i < sim->n; i++) {
        say(sim, i, (struct agent_msg){ .type = AGENT_BYE });
        drain(sim, out);
    }
    if (sim->coordinator.phase != COORDINATOR_ENDED) {
        die("the job has not ended");
    }
}

static void print(const struct sim *sim, const char *step, uint64_t *last_ns,
                  uint64_t *last_in, uint64_t *last_out, unsigned per)
{
    uint64_t now_ns = clock_ns();
    double n = (double)sim->n * per;

    (void)printf("%s %u %.0f %.2f %.2f\n", step, sim->n,
                 (double)(now_ns - *last_ns) / n,
                 (double)(sim->n_in - *last_in) / n,
                 (double)(sim->coordinator.n_messages - *last_out) / n);
    *last_ns = now_ns;
    *last_in = sim->n_in;
    *last_out = sim->coordinator.n_messages;
}

int main(int argc, char **argv)
{
    struct sim sim = { .n = argc > 1 ? (uint32_t)atoi(argv[1]) : 8 };
    const struct coordinator_config config = { .min_nodes = sim.n,
                                               .max_nodes = sim.n,
                                               .run_id = "bench",
                                               .max_restarts = 1,
                                               .join_ms = 600000,
                                               .lease_ms = 10000,
                                               .address = "host",
                                               .port = 1 };
    struct buf out = { 0 };
    uint64_t last_ns;
    uint64_t last_in = 0;
    uint64_t last_out = 0;

    if (sim.n < 2 || coordinator_init(&sim.coordinator, &config, 0) < 0) {
        die("give a number of agents from 2");
    }
    last_ns = clock_ns();
    join_all(&sim, &out);
    print(&sim, "join", &last_ns, &last_in, &last_out, 1);
    beat_all(&sim, &out);
    print(&sim, "heartbeat", &last_ns, &last_in, &last_out, BEATS);
    end_round(&sim, &out, 7);
    print(&sim, "restart", &last_ns, &last_in, &last_out, 1);
    end_round(&sim, &out, 0);
    leave_all(&sim, &out);
    print(&sim, "end", &last_ns, &last_in, &last_out, 1);
    coordinator_destroy(&sim.coordinator);
    buf_destroy(&out);
    return 0;
}
