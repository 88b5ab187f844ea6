/*
 * The coordinator: joining, ranks, failure, restart, nodes that come, go and
 * fall silent, and the end. Time is passed in, so hours take no time.
 */
#include "common/clock.h"
#include "launcher/coordinator.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 12
#define T_MS 10000 /* the lease */

/* What one agent was told last, by type. */
struct told {
    unsigned n[AGENT_END + 1];
    struct agent_msg start;
    struct agent_msg stop;
    struct agent_msg end;
    char text[AGENT_END + 1][AGENT_TEXT_MAX];
    char report[AGENT_REPORT_MAX];
    char address[AGENT_HOST_MAX];
};

struct job {
    struct coordinator coordinator;
    uint64_t now_ms;
    struct told *told; /* by row */
};

static void drain(struct job *job)
{
    const struct agent_msg *msg;
    uint32_t id;

    while (coordinator_next(&job->coordinator, &id, &msg)) {
        struct told *told;

        assert_true(id < NODES_MAX);
        told = &job->told[id];
        told->n[msg->type]++;
        (void)snprintf(told->text[msg->type], AGENT_TEXT_MAX, "%s", msg->text);
        if (msg->type == AGENT_START) {
            told->start = *msg;
            (void)snprintf(told->address, sizeof(told->address), "%s",
                           msg->address);
        } else if (msg->type == AGENT_STOP) {
            told->stop = *msg;
        } else if (msg->type == AGENT_END) {
            told->end = *msg;
            (void)snprintf(told->report, sizeof(told->report), "%s",
                           msg->report);
        }
    }
}

/* Forget what was told so far. */
static void forget(struct job *job)
{
    memset(job->told, 0, NODES_MAX * sizeof(*job->told));
}

/* Let time pass in the steps that the coordinator asks for. */
static void pass(struct job *job, uint64_t ms)
{
    uint64_t until_ms = job->now_ms + ms;

    while (coordinator_due(&job->coordinator) <= until_ms) {
        uint64_t due_ms = coordinator_due(&job->coordinator);

        job->now_ms = due_ms > job->now_ms ? due_ms : job->now_ms;
        (void)coordinator_tick(&job->coordinator, job->now_ms);
        drain(job);
    }
    job->now_ms = until_ms;
}

static struct agent_msg hello_of(uint32_t row, uint32_t min, uint32_t max)
{
    static char hosts[NODES_MAX][16];

    (void)snprintf(hosts[row], sizeof(hosts[row]), "node%u", row);
    return (struct agent_msg){ .type = AGENT_HELLO,
                               .incarnation = 1000 + row,
                               .min_nodes = min,
                               .max_nodes = max,
                               .node_rank = AGENT_NO_RANK,
                               .n_workers = 2,
                               .host = hosts[row],
                               .run_id = "job",
                               .role = "default" };
}

static int take(struct job *job, uint32_t id, const struct agent_msg *msg)
{
    struct agent_msg copy = *msg;
    int rc;

    copy.host = copy.host != NULL ? copy.host : "";
    copy.run_id = copy.run_id != NULL ? copy.run_id : "";
    copy.role = copy.role != NULL ? copy.role : "";
    copy.text = copy.text != NULL ? copy.text : "";
    copy.report = copy.report != NULL ? copy.report : "";
    copy.address = "";
    if (copy.type != AGENT_HELLO) {
        copy.incarnation = job->coordinator.members.rows[id].incarnation;
        copy.round = copy.round != 0 ? copy.round : job->coordinator.round;
    }
    rc = coordinator_take(&job->coordinator, id, &copy, job->now_ms);
    drain(job);
    return rc;
}

static void say(struct job *job, uint32_t id, enum agent_msg_type type)
{
    const struct agent_msg msg = { .type = type };

    assert_int_equal(take(job, id, &msg), 0);
}

/* Connect and say HELLO: the row. */
static uint32_t join(struct job *job, const struct agent_msg *hello)
{
    int64_t id =
        coordinator_connected(&job->coordinator, "10.0.0.1", job->now_ms);

    assert_true(id >= 0);
    assert_int_equal(take(job, (uint32_t)id, hello), 0);
    return (uint32_t)id;
}

static struct coordinator_config config_of(uint32_t min, uint32_t max)
{
    return (struct coordinator_config){ .min_nodes = min,
                                        .max_nodes = max,
                                        .run_id = "job",
                                        .backoff_ms = 1000,
                                        .join_ms = 600000,
                                        .last_call_ms = 30000,
                                        .lease_ms = T_MS,
                                        .address = "host",
                                        .port = 29500 };
}

static void begin_with(struct job *job, const struct coordinator_config *config,
                       const struct agent_msg *hello)
{
    *job = (struct job){ .now_ms = 1000000 };
    job->told = calloc(NODES_MAX, sizeof(*job->told));
    assert_non_null(job->told);
    assert_int_equal(coordinator_init(&job->coordinator, config, job->now_ms),
                     0);
    assert_int_equal(take(job, MEMBER_LOCAL, hello), 0);
}

/* The host node, and n - 1 others that have joined. */
static void begin(struct job *job, uint32_t min, uint32_t max, uint32_t n,
                  uint32_t restarts)
{
    struct coordinator_config config = config_of(min, max);
    struct agent_msg hello = hello_of(0, min, max);
    uint32_t i;

    config.max_restarts = restarts;
    begin_with(job, &config, &hello);
    for (i = 1; i < n; i++) {
        hello = hello_of(i, min, max);
        assert_int_equal(join(job, &hello), i);
    }
}

static void end(struct job *job)
{
    coordinator_destroy(&job->coordinator);
    free(job->told);
}

/* Everybody but some says heartbeats while time passes. */
static void pass_alive(struct job *job, uint64_t ms, uint32_t silent)
{
    uint64_t until_ms = job->now_ms + ms;

    while (job->now_ms < until_ms) {
        uint32_t i;

        for (i = 1; i < job->coordinator.members.n; i++) {
            enum member_state state = job->coordinator.members.rows[i].state;

            if (i != silent && state != MEMBER_FREE &&
                state != MEMBER_REFUSED && state != MEMBER_NEW) {
                say(job, i, AGENT_HEARTBEAT);
            }
        }
        pass(job,
             until_ms - job->now_ms < 1000 ? until_ms - job->now_ms : 1000);
    }
}

static void failed(struct job *job, uint32_t id, uint32_t code,
                   const char *text)
{
    const struct agent_msg msg = { .type = AGENT_FAILED,
                                   .code = code,
                                   .text = text };

    assert_int_equal(take(job, id, &msg), 0);
}

static void ended(struct job *job, uint32_t id, uint32_t code)
{
    const struct agent_msg msg = { .type = AGENT_ENDED,
                                   .code = code,
                                   .n_stopped = 2 };

    assert_int_equal(take(job, id, &msg), 0);
}

/* The others say that they have heard of the end; then the host node hears. */
static void assert_ends(struct job *job, uint32_t code)
{
    uint32_t i;

    for (i = 1; i < job->coordinator.members.n; i++) {
        if (job->coordinator.members.rows[i].state == MEMBER_OVER) {
            assert_int_equal(job->told[i].n[AGENT_END], 1);
            assert_int_equal(job->told[i].end.code, code);
            assert_int_equal(job->told[MEMBER_LOCAL].n[AGENT_END], 0);
            say(job, i, AGENT_BYE);
        }
    }
    assert_int_equal(job->told[MEMBER_LOCAL].n[AGENT_END], 1);
    assert_int_equal(job->told[MEMBER_LOCAL].end.code, code);
    assert_int_equal(job->coordinator.phase, COORDINATOR_ENDED);
    assert_true(coordinator_due(&job->coordinator) == CLOCK_NEVER);
}

static void assert_place(struct job *job, uint32_t row, uint32_t group_rank,
                         uint32_t base_rank, uint32_t world_size)
{
    const struct told *told = &job->told[row];

    assert_int_equal(told->n[AGENT_START], 1);
    assert_int_equal(told->start.group_rank, group_rank);
    assert_int_equal(told->start.base_rank, base_rank);
    assert_int_equal(told->start.world_size, world_size);
}

/* --- joining and ranks -------------------------------------------------- */

static void one_node_starts_at_once(void **state)
{
    struct job job;

    (void)state;
    begin(&job, 1, 1, 1, 0);
    assert_place(&job, MEMBER_LOCAL, 0, 0, 2);
    assert_int_equal(job.told[0].start.round, 1);
    assert_true(coordinator_due(&job.coordinator) == CLOCK_NEVER);
    ended(&job, 0, 0);
    assert_ends(&job, 0);
    end(&job);
}

static void ranks_asked_for_are_had_whoever_comes_first(void **state)
{
    static const uint32_t n_workers[] = { 1, 3, 2 };
    struct coordinator_config config = config_of(3, 3);
    struct agent_msg hello = hello_of(0, 3, 3);
    struct job job;
    uint32_t id2;
    uint32_t id1;

    (void)state;
    hello.n_workers = n_workers[0];
    hello.node_rank = 0;
    begin_with(&job, &config, &hello);
    hello = hello_of(2, 3, 3);
    hello.node_rank = 2;
    hello.n_workers = n_workers[2];
    id2 = join(&job, &hello);
    assert_int_equal(job.told[id2].n[AGENT_START], 0);
    hello = hello_of(1, 3, 3);
    hello.node_rank = 1;
    hello.n_workers = n_workers[1];
    id1 = join(&job, &hello);
    assert_place(&job, MEMBER_LOCAL, 0, 0, 6);
    assert_place(&job, id1, 1, 1, 6);
    assert_place(&job, id2, 2, 4, 6);
    assert_string_equal(job.told[id2].address, "host");
    assert_int_equal(job.told[id2].start.port, 29500);
    end(&job);
}

static void without_ranks_names_are_in_natural_order(void **state)
{
    static const uint32_t arrivals[] = { 10, 9, 2, 1 };
    struct job job;
    uint32_t ids[4];
    uint32_t i;

    (void)state;
    begin(&job, 5, 5, 1, 0);
    for (i = 0; i < 4; i++) {
        const struct agent_msg hello = hello_of(arrivals[i], 5, 5);

        ids[i] = join(&job, &hello);
    }
    assert_place(&job, MEMBER_LOCAL, 0, 0, 10);
    assert_place(&job, ids[0], 4, 8, 10); /* node10 */
    assert_place(&job, ids[1], 3, 6, 10);
    assert_place(&job, ids[2], 2, 4, 10);
    assert_place(&job, ids[3], 1, 2, 10);
    end(&job);
}

static void nodes_without_a_rank_fill_the_gaps(void **state)
{
    struct agent_msg hello;
    struct job job;
    uint32_t ids[3];

    (void)state;
    begin(&job, 4, 4, 1, 0);
    hello = hello_of(3, 4, 4);
    ids[0] = join(&job, &hello);
    hello = hello_of(1, 4, 4);
    hello.node_rank = 2;
    ids[1] = join(&job, &hello);
    hello = hello_of(2, 4, 4);
    ids[2] = join(&job, &hello);
    assert_place(&job, ids[2], 1, 2, 8);
    assert_place(&job, ids[1], 2, 4, 8);
    assert_place(&job, ids[0], 3, 6, 8);
    end(&job);
}

static void roles_are_counted_over_nodes(void **state)
{
    struct agent_msg hello;
    struct job job;

    (void)state;
    begin(&job, 3, 3, 1, 0);
    hello = hello_of(1, 3, 3);
    hello.role = "reader";
    (void)join(&job, &hello);
    hello = hello_of(2, 3, 3);
    (void)join(&job, &hello);
    assert_int_equal(job.told[0].start.role_base_rank, 0);
    assert_int_equal(job.told[0].start.role_world_size, 4);
    assert_int_equal(job.told[1].start.role_base_rank, 0);
    assert_int_equal(job.told[1].start.role_world_size, 2);
    assert_int_equal(job.told[2].start.role_base_rank, 2);
    assert_int_equal(job.told[2].start.role_world_size, 4);
    end(&job);
}

static void missing_nodes_are_named_on_every_node_that_came(void **state)
{
    struct coordinator_config config = config_of(4, 4);
    struct agent_msg hello = hello_of(0, 4, 4);
    struct job job;
    uint32_t id;

    (void)state;
    config.join_ms = 25000;
    hello.node_rank = 0;
    begin_with(&job, &config, &hello);
    hello = hello_of(2, 4, 4);
    hello.node_rank = 2;
    id = join(&job, &hello);
    pass_alive(&job, 24000, MEMBER_NONE);
    assert_int_equal(job.told[0].n[AGENT_STATUS], 2);
    assert_string_equal(job.told[id].text[AGENT_STATUS],
                        "2 of 4 nodes here (0: node0, 2: node2); missing: 1, "
                        "3; 5 s left");
    pass_alive(&job, 2000, MEMBER_NONE);
    assert_string_equal(job.told[id].text[AGENT_END],
                        "not all nodes have joined in 25 s: 2 of 4 nodes here "
                        "(0: node0, 2: node2); missing: 1, 3");
    assert_ends(&job, 124);
    assert_string_equal(job.told[0].text[AGENT_END],
                        job.told[id].text[AGENT_END]);
    end(&job);
}

static void who_does_not_belong_is_refused_with_both_sides_named(void **state)
{
    static const struct {
        const char *run_id;
        uint32_t min;
        uint32_t max;
        uint32_t node_rank;
        const char *text;
    } cases[] = {
        { "other", 2, 2, 1,
          "this is a node of job other (--rdzv-id, on node1), and at node0 "
          "runs job job" },
        { "job", 3, 3, 1,
          "node1 was started with --nnodes=3, and node0 with --nnodes=2" },
        { "job", 1, 2, 1,
          "node1 was started with --nnodes=1:2, and node0 with --nnodes=2" },
        { "job", 2, 2, 0,
          "node1 has node rank 0, and so has node0, which hosts the job: give "
          "each node its own --node-rank" },
        { "job", 2, 2, 2, "node1 has node rank 2, and the job 2 nodes" },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct agent_msg hello = hello_of(1, cases[i].min, cases[i].max);
        struct job job;
        uint32_t id;

        begin(&job, 2, 2, 1, 0);
        hello.run_id = cases[i].run_id;
        hello.node_rank = cases[i].node_rank;
        id = join(&job, &hello);
        assert_int_equal(job.told[id].n[AGENT_REFUSED], 1);
        assert_string_equal(job.told[id].text[AGENT_REFUSED], cases[i].text);
        coordinator_lost(&job.coordinator, id, "it has left", job.now_ms);
        /* The job goes on: the right one may still come. */
        hello = hello_of(1, 2, 2);
        id = join(&job, &hello);
        assert_int_equal(job.told[id].n[AGENT_START], 1);
        end(&job);
    }
}

static void two_nodes_with_one_rank_are_told(void **state)
{
    struct agent_msg hello;
    struct job job;
    uint32_t id;

    (void)state;
    begin(&job, 3, 3, 1, 0);
    hello = hello_of(1, 3, 3);
    hello.node_rank = 1;
    (void)join(&job, &hello);
    hello = hello_of(2, 3, 3);
    hello.node_rank = 1;
    id = join(&job, &hello);
    assert_string_equal(job.told[id].text[AGENT_REFUSED],
                        "node2 has node rank 1, and so has node1: give each "
                        "node its own --node-rank");
    end(&job);
}

static void one_node_too_many_is_refused(void **state)
{
    struct agent_msg hello = hello_of(2, 2, 2);
    struct job job;
    uint32_t id;

    (void)state;
    begin(&job, 2, 2, 2, 0);
    id = join(&job, &hello);
    assert_string_equal(job.told[id].text[AGENT_REFUSED],
                        "the job has its 2 nodes: node2 is one too many");
    end(&job);
}

static void who_says_no_hello_is_cut_off(void **state)
{
    const struct agent_msg heartbeat = { .type = AGENT_HEARTBEAT };
    struct job job;
    int64_t id;

    (void)state;
    begin(&job, 2, 2, 1, 0);
    id = coordinator_connected(&job.coordinator, "", job.now_ms);
    assert_int_equal(take(&job, (uint32_t)id, &heartbeat), -EPROTO);
    id = coordinator_connected(&job.coordinator, "", job.now_ms);
    pass(&job, COORDINATOR_HELLO_MS + 2 * COORDINATOR_LOOK_MS);
    assert_int_equal(job.told[id].n[AGENT_REFUSED], 1);
    end(&job);
}

/* --- failure, restart, end ---------------------------------------------- */

static void success_everywhere_is_0_and_the_host_hears_it_last(void **state)
{
    struct job job;

    (void)state;
    begin(&job, 3, 3, 3, 0);
    ended(&job, 1, 0);
    pass_alive(&job, 3600000, MEMBER_NONE); /* for as long as it takes */
    ended(&job, 0, 0);
    assert_int_equal(job.told[1].n[AGENT_END], 0);
    ended(&job, 2, 0);
    assert_ends(&job, 0);
    end(&job);
}

static void a_failure_stops_all_and_its_code_is_everybodys(void **state)
{
    struct agent_msg msg = { .type = AGENT_ENDED,
                             .code = 7,
                             .text = "rank 2 exited with code 7; 1 stopped",
                             .report = "  its last lines\n" };
    struct job job;

    (void)state;
    begin(&job, 3, 3, 3, 0);
    failed(&job, 1, 7, "rank 2 exited with code 7");
    failed(&job, 2, 9, "rank 4 exited with code 9"); /* later */
    assert_int_equal(job.told[0].n[AGENT_STOP], 1);
    assert_string_equal(job.told[0].text[AGENT_STOP],
                        "rank 2 exited with code 7");
    assert_int_equal(job.told[1].n[AGENT_STOP], 0); /* it knows */
    ended(&job, 0, 0);
    ended(&job, 2, 9);
    assert_int_equal(take(&job, 1, &msg), 0);
    assert_ends(&job, 7);
    assert_string_equal(job.told[2].text[AGENT_END], msg.text);
    assert_string_equal(job.told[2].report,
                        "  its last lines\n  on other nodes: 4 stopped by "
                        "flaunch\n");
    assert_int_equal(job.told[1].end.mine, 1);
    assert_int_equal(job.told[2].end.mine, 0);
    end(&job);
}

static void restarts_are_the_jobs(void **state)
{
    struct job job;
    uint32_t i;

    (void)state;
    begin(&job, 2, 2, 2, 2);
    for (i = 0; i < 2; i++) {
        forget(&job);
        failed(&job, i, 3, "rank 0 exited with code 3");
        ended(&job, 0, 3);
        assert_int_equal(job.told[0].n[AGENT_START], 0);
        ended(&job, 1, 3);
        pass_alive(&job, 500, MEMBER_NONE);
        assert_int_equal(job.told[0].n[AGENT_START], 0); /* 1 s, then 2 s */
        pass_alive(&job, 2000, MEMBER_NONE);
        assert_int_equal(job.told[0].n[AGENT_START], 1);
        assert_int_equal(job.told[1].start.restarts, i + 1);
        assert_int_equal(job.told[1].start.round, i + 2);
    }
    failed(&job, 1, 4, "rank 2 exited with code 4");
    ended(&job, 0, 0);
    ended(&job, 1, 4);
    assert_ends(&job, 4);
    end(&job);
}

static void what_no_restart_can_help_ends_the_job(void **state)
{
    const struct agent_msg msg = {
        .type = AGENT_FAILED, .code = 127, .for_good = 1, .text = "no such file"
    };
    struct job job;

    (void)state;
    begin(&job, 2, 2, 2, 5);
    assert_int_equal(take(&job, 1, &msg), 0);
    ended(&job, 0, 0);
    ended(&job, 1, 127);
    assert_ends(&job, 127);
    end(&job);
}

static void messages_of_another_round_are_not_obeyed(void **state)
{
    const struct agent_msg stale[] = {
        { .type = AGENT_FAILED, .round = 9, .code = 3 },
        { .type = AGENT_ENDED, .round = 9, .code = 3 },
        { .type = AGENT_FIRST_DONE, .round = 9 },
    };
    struct agent_msg other = { .type = AGENT_FAILED,
                               .round = 1,
                               .incarnation = 5,
                               .code = 3,
                               .text = "",
                               .report = "" };
    struct job job;
    size_t i;

    (void)state;
    begin(&job, 2, 2, 2, 0);
    for (i = 0; i < sizeof(stale) / sizeof(stale[0]); i++) {
        assert_int_equal(take(&job, 1, &stale[i]), 0);
    }
    assert_int_equal(coordinator_take(&job.coordinator, 1, &other, job.now_ms),
                     0);
    drain(&job);
    assert_int_equal(job.coordinator.phase, COORDINATOR_RUNNING);
    assert_int_equal(job.coordinator.members.n_running, 2);
    end(&job);
}

static void the_first_rank_done_is_told_to_the_others(void **state)
{
    struct job job;

    (void)state;
    begin(&job, 3, 3, 3, 0);
    say(&job, 2, AGENT_FIRST_DONE);
    say(&job, 1, AGENT_FIRST_DONE);
    assert_int_equal(job.told[0].n[AGENT_FIRST_DONE], 1);
    assert_int_equal(job.told[1].n[AGENT_FIRST_DONE], 1);
    assert_int_equal(job.told[2].n[AGENT_FIRST_DONE], 0);
    end(&job);
}

/* --- stop --------------------------------------------------------------- */

static const struct agent_msg term = { .type = AGENT_STOP_JOB,
                                       .code = 143,
                                       .signo = SIGTERM,
                                       .text = "SIGTERM on node1" };

static void a_stop_signal_stops_all_nodes(void **state)
{
    static const struct {
        uint32_t codes[2]; /* of the nodes */
        uint32_t code;
    } cases[] = {
        { { 0, 0 }, 0 },
        { { 143, 143 }, 143 },
        { { 0, 143 }, 143 },
        { { 143, 5 }, 5 },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job job;

        begin(&job, 2, 2, 2, 3);
        assert_int_equal(take(&job, 1, &term), 0);
        assert_int_equal(job.told[0].n[AGENT_STOP], 1);
        assert_int_equal(job.told[0].stop.signo, SIGTERM);
        assert_int_equal(job.told[0].stop.for_good, 1);
        assert_int_equal(job.told[1].n[AGENT_STOP], 0);
        ended(&job, 0, cases[i].codes[0]);
        ended(&job, 1, cases[i].codes[1]);
        assert_ends(&job, cases[i].code);
        end(&job);
    }
}

static void a_second_signal_kills_on_all_nodes(void **state)
{
    struct agent_msg again = term;
    struct job job;

    (void)state;
    begin(&job, 2, 2, 2, 0);
    assert_int_equal(take(&job, 1, &term), 0);
    again.at_once = 1;
    assert_int_equal(take(&job, 1, &again), 0);
    assert_int_equal(job.told[0].n[AGENT_STOP], 2);
    assert_int_equal(job.told[0].stop.at_once, 1);
    end(&job);
}

static void a_stop_before_workers_run_ends_the_job(void **state)
{
    struct job job;

    (void)state;
    begin(&job, 3, 3, 2, 0);
    assert_int_equal(take(&job, 1, &term), 0);
    assert_string_equal(job.told[1].text[AGENT_END], "SIGTERM on node1");
    assert_ends(&job, 143);
    end(&job);
}

static void a_node_lost_during_a_stop_is_no_failure_of_the_job(void **state)
{
    struct job job;

    (void)state;
    begin(&job, 3, 3, 3, 3);
    assert_int_equal(take(&job, 1, &term), 0);
    coordinator_lost(&job.coordinator, 2, "its connection was closed",
                     job.now_ms);
    drain(&job);
    ended(&job, 0, 0);
    ended(&job, 1, 0);
    assert_ends(&job, 143); /* who knows how its workers ended */
    end(&job);
}

static void a_time_limit_wins(void **state)
{
    const struct agent_msg limit = { .type = AGENT_STOP_JOB,
                                     .code = 124,
                                     .text = "--timeout=5 is over" };
    struct job job;

    (void)state;
    begin(&job, 2, 2, 2, 3);
    assert_int_equal(take(&job, 0, &limit), 0);
    failed(&job, 1, 3, "rank 2 exited with code 3");
    ended(&job, 0, 124);
    ended(&job, 1, 3);
    assert_string_equal(job.told[1].text[AGENT_END], "--timeout=5 is over");
    assert_ends(&job, 124);
    end(&job);
}

/* --- nodes that go and come --------------------------------------------- */

static void a_lost_node_ends_a_job_without_restarts(void **state)
{
    struct job job;

    (void)state;
    begin(&job, 3, 3, 3, 0);
    coordinator_lost(&job.coordinator, 2, "its connection was closed",
                     job.now_ms);
    drain(&job);
    assert_int_equal(job.told[0].n[AGENT_STOP], 1);
    assert_string_equal(job.told[1].text[AGENT_STOP],
                        "lost node 2 (node2): its connection was closed");
    ended(&job, 0, 0);
    ended(&job, 1, 0);
    assert_string_equal(job.told[1].text[AGENT_END],
                        "lost node 2 (node2): its connection was closed");
    assert_ends(&job, 125);
    end(&job);
}

static void silence_is_death_after_the_lease_and_no_earlier(void **state)
{
    struct job job;

    (void)state;
    begin(&job, 3, 3, 3, 0);
    pass_alive(&job, 5000, MEMBER_NONE);
    pass_alive(&job, T_MS - 1500, 2); /* heard of 1 s before that */
    assert_int_equal(job.told[0].n[AGENT_STOP], 0);
    assert_true(job.coordinator.members.rows[2].quiet);
    pass_alive(&job, 2000, 2);
    assert_int_equal(job.told[0].n[AGENT_STOP], 1);
    assert_string_equal(job.told[0].text[AGENT_STOP],
                        "lost node 2 (node2): nothing was heard of it for 10 "
                        "s");
    /* Should it live, it learns of it. */
    assert_int_equal(job.told[2].n[AGENT_REFUSED], 1);
    end(&job);
}

static void our_own_pause_kills_nobody(void **state)
{
    struct job job;

    (void)state;
    begin(&job, 3, 3, 3, 0);
    pass_alive(&job, 5000, MEMBER_NONE);
    job.now_ms += 3600000; /* stopped, or without a CPU */
    (void)coordinator_tick(&job.coordinator, job.now_ms);
    drain(&job);
    pass_alive(&job, 5000, MEMBER_NONE);
    assert_int_equal(job.told[0].n[AGENT_STOP], 0);
    pass_alive(&job, T_MS + 1000, 2); /* whoever is silent still dies */
    assert_int_equal(job.told[0].n[AGENT_STOP], 1);
    end(&job);
}

static void a_lost_node_uses_up_a_restart_and_is_waited_for(void **state)
{
    struct agent_msg hello;
    struct job job;
    uint32_t id;

    (void)state;
    begin(&job, 2, 2, 2, 1);
    coordinator_lost(&job.coordinator, 1, "its connection was closed",
                     job.now_ms);
    drain(&job);
    ended(&job, 0, 0);
    assert_string_equal(job.told[0].text[AGENT_STATUS],
                        "lost node 1 (node1): its connection was closed; "
                        "restart 1 of 1 in 1 s");
    pass(&job, 60000);
    assert_int_equal(job.told[0].n[AGENT_START], 1);
    forget(&job);
    hello = hello_of(1, 2, 2); /* its pod was started again */
    id = join(&job, &hello);
    assert_place(&job, id, 1, 2, 4);
    assert_int_equal(job.told[0].start.restarts, 1);
    end(&job);
}

static void no_round_begins_within_a_second_of_a_loss(void **state)
{
    struct coordinator_config config = config_of(1, 2);
    struct agent_msg hello = hello_of(0, 1, 2);
    struct job job;

    (void)state;
    config.max_restarts = 3;
    config.backoff_ms = 0;
    begin_with(&job, &config, &hello);
    hello = hello_of(1, 1, 2);
    (void)join(&job, &hello);
    assert_int_equal(job.told[0].n[AGENT_START], 1);
    coordinator_lost(&job.coordinator, 1, "its connection was closed",
                     job.now_ms);
    drain(&job);
    ended(&job, 0, 0);
    pass(&job, COORDINATOR_FENCE_MS - 1);
    assert_int_equal(job.told[0].n[AGENT_START], 1);
    pass(&job, 1);
    assert_int_equal(job.told[0].n[AGENT_START], 2);
    assert_int_equal(job.told[0].start.world_size, 2);
    end(&job);
}

static void last_call_waits_for_more_nodes(void **state)
{
    struct agent_msg hello;
    struct job job;

    (void)state;
    begin(&job, 2, 4, 2, 0);
    pass_alive(&job, 29000, MEMBER_NONE);
    assert_int_equal(job.told[0].n[AGENT_START], 0);
    hello = hello_of(2, 2, 4);
    (void)join(&job, &hello);
    pass_alive(&job, 1500, MEMBER_NONE);
    assert_int_equal(job.told[0].n[AGENT_START], 1);
    assert_int_equal(job.told[2].start.n_nodes, 3);
    end(&job);
}

static void the_last_place_begins_the_round_at_once(void **state)
{
    struct job job;

    (void)state;
    begin(&job, 1, 3, 3, 0);
    assert_int_equal(job.told[0].n[AGENT_START], 1);
    assert_int_equal(job.told[2].start.n_nodes, 3);
    end(&job);
}

static void who_comes_later_gets_a_new_round_and_no_restart(void **state)
{
    struct agent_msg hello;
    struct job job;
    uint32_t id;

    (void)state;
    begin(&job, 1, 2, 1, 0);
    pass(&job, 30000);
    assert_int_equal(job.told[0].n[AGENT_START], 1);
    hello = hello_of(1, 1, 2);
    id = join(&job, &hello);
    assert_int_equal(job.told[0].n[AGENT_STOP], 1);
    assert_int_equal(job.told[0].stop.for_good, 0);
    assert_string_equal(job.told[0].text[AGENT_STOP],
                        "node1 joins: a new round");
    forget(&job);
    ended(&job, 0, 0);
    assert_place(&job, MEMBER_LOCAL, 0, 0, 4);
    assert_place(&job, id, 1, 2, 4);
    assert_int_equal(job.told[0].start.restarts, 0);
    assert_int_equal(job.told[0].start.changes, 1);
    end(&job);
}

static void who_comes_when_work_is_done_waits_for_the_end(void **state)
{
    struct agent_msg hello;
    struct job job;
    uint32_t id;

    (void)state;
    begin(&job, 2, 3, 2, 0);
    pass_alive(&job, 31000, MEMBER_NONE);
    ended(&job, 1, 0);
    hello = hello_of(2, 2, 3);
    id = join(&job, &hello);
    assert_int_equal(job.told[0].n[AGENT_STOP], 0);
    ended(&job, 0, 0);
    assert_int_equal(job.told[id].n[AGENT_END], 1);
    assert_ends(&job, 0);
    end(&job);
}

static void a_spare_takes_the_place_of_a_lost_node(void **state)
{
    struct agent_msg hello;
    struct job job;
    uint32_t spare;

    (void)state;
    begin(&job, 1, 2, 2, 3);
    hello = hello_of(2, 1, 2);
    spare = join(&job, &hello);
    assert_int_equal(job.told[spare].n[AGENT_WELCOME], 1);
    assert_int_equal(job.told[0].n[AGENT_STOP], 0);
    forget(&job);
    coordinator_lost(&job.coordinator, 1, "its connection was closed",
                     job.now_ms);
    drain(&job);
    ended(&job, 0, 0);
    pass_alive(&job, 2000, MEMBER_NONE);
    assert_place(&job, spare, 1, 2, 4);
    end(&job);
}

static void a_node_may_leave_an_elastic_job(void **state)
{
    const struct agent_msg leave = { .type = AGENT_LEAVE, .text = "SIGTERM" };
    struct job job;

    (void)state;
    begin(&job, 1, 2, 2, 0);
    assert_int_equal(take(&job, 1, &leave), 0);
    assert_int_equal(job.told[0].n[AGENT_STOP], 1);
    assert_string_equal(job.told[0].text[AGENT_STOP],
                        "node 1 (node1) leaves (SIGTERM)");
    forget(&job);
    ended(&job, 0, 0);
    ended(&job, 1, 143);
    assert_int_equal(job.told[1].n[AGENT_END], 1);
    assert_place(&job, MEMBER_LOCAL, 0, 0, 2);
    assert_int_equal(job.told[0].start.restarts, 0);
    say(&job, 1, AGENT_BYE);
    ended(&job, 0, 0);
    assert_ends(&job, 0);
    end(&job);
}

static void a_newcomer_may_wait_for_a_silent_nodes_death(void **state)
{
    struct agent_msg hello;
    struct job job;
    uint32_t id;

    (void)state;
    begin(&job, 2, 2, 1, 3);
    hello = hello_of(1, 2, 2);
    hello.node_rank = 1;
    (void)join(&job, &hello);
    pass_alive(&job, 5000, 1);
    hello.incarnation = 77;
    id = join(&job, &hello);
    assert_int_equal(job.told[id].n[AGENT_REFUSED], 0);
    pass_alive(&job, 7000, 1);
    assert_int_equal(job.told[1].n[AGENT_REFUSED], 1);
    coordinator_lost(&job.coordinator, 1, "", job.now_ms);
    ended(&job, 0, 0);
    pass_alive(&job, 3000, MEMBER_NONE);
    assert_place(&job, id, 1, 2, 4);
    end(&job);
}

static void a_newcomer_is_refused_when_the_silent_node_lives(void **state)
{
    struct agent_msg hello;
    struct job job;
    uint32_t id;

    (void)state;
    begin(&job, 2, 2, 1, 3);
    hello = hello_of(1, 2, 2);
    hello.node_rank = 1;
    (void)join(&job, &hello);
    pass_alive(&job, 5000, 1);
    hello.incarnation = 77;
    id = join(&job, &hello);
    pass_alive(&job, 1000, MEMBER_NONE);
    assert_int_equal(job.told[id].n[AGENT_REFUSED], 1);
    assert_int_equal(job.told[0].n[AGENT_STOP], 0);
    end(&job);
}

static void a_node_lost_while_joining_is_told_and_may_come_back(void **state)
{
    struct agent_msg hello;
    struct job job;
    uint32_t id;

    (void)state;
    begin(&job, 3, 3, 2, 0);
    coordinator_lost(&job.coordinator, 1, "its connection was closed",
                     job.now_ms);
    drain(&job);
    assert_string_equal(job.told[0].text[AGENT_STATUS],
                        "lost node1: its connection was closed");
    hello = hello_of(1, 3, 3);
    (void)join(&job, &hello);
    hello = hello_of(2, 3, 3);
    id = join(&job, &hello);
    assert_int_equal(job.told[id].n[AGENT_START], 1);
    end(&job);
}

static void who_does_not_confirm_the_end_is_not_waited_for(void **state)
{
    struct job job;

    (void)state;
    begin(&job, 2, 2, 2, 0);
    ended(&job, 0, 0);
    ended(&job, 1, 0);
    assert_int_equal(job.told[1].n[AGENT_END], 1);
    assert_int_equal(job.told[0].n[AGENT_END], 0);
    pass(&job, T_MS + 1000);
    assert_int_equal(job.told[0].n[AGENT_END], 1);
    assert_int_equal(job.told[0].end.code, 0);
    end(&job);
}

static void who_comes_after_the_end_is_told_of_it(void **state)
{
    struct agent_msg hello;
    struct job job;
    uint32_t id;

    (void)state;
    begin(&job, 2, 2, 2, 0);
    coordinator_lost(&job.coordinator, 1, "its connection was closed",
                     job.now_ms);
    drain(&job);
    hello = hello_of(2, 2, 2);
    id = join(&job, &hello);
    ended(&job, 0, 0);
    assert_int_equal(job.told[id].n[AGENT_END], 1);
    assert_string_equal(job.told[id].text[AGENT_END],
                        "lost node 1 (node1): its connection was closed");
    end(&job);
}

/* --- chance ------------------------------------------------------------- */

static uint32_t random_next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*seed >> 33);
}

/* What a made-up agent is at. */
struct actor {
    bool connected;
    bool running; /* its workers */
    bool leaving;
    bool over;
    uint32_t id;
    uint64_t round;
};

/* Give messages to the actors they are for; rows are reused. */
static void act_on_messages(struct job *job, struct actor *actors, uint32_t n)
{
    const struct agent_msg *msg;
    uint32_t id;

    while (coordinator_next(&job->coordinator, &id, &msg)) {
        struct actor *actor = NULL;
        uint32_t i;

        for (i = 0; i < n; i++) {
            if (actors[i].connected && actors[i].id == id) {
                actor = &actors[i];
            }
        }
        assert_non_null(actor);
        switch (msg->type) {
        case AGENT_START:
            assert_false(actor->running);
            assert_true(msg->round > actor->round);
            actor->running = true;
            actor->round = msg->round;
            break;
        case AGENT_END:
            assert_false(actor->running);
            assert_false(actor->over);
            actor->over = true;
            break;
        case AGENT_REFUSED:
            coordinator_lost(&job->coordinator, id, "refused", job->now_ms);
            actor->connected = false;
            actor->running = false;
            break;
        default:
            break;
        }
    }
}

/* Who runs, runs in one round, with ranks of his own. */
static void assert_one_round(struct job *job, const struct actor *actors,
                             uint32_t n)
{
    bool taken[NODES_MAX] = { false };
    uint32_t i;

    for (i = 0; i < n; i++) {
        uint32_t rank;

        if (!actors[i].connected || !actors[i].running) {
            continue;
        }
        assert_true(actors[i].round == job->coordinator.round);
        rank = job->coordinator.members.rows[actors[i].id].group_rank;
        assert_true(rank < job->coordinator.n_nodes);
        assert_false(taken[rank]);
        taken[rank] = true;
    }
}

static void act(struct job *job, struct actor *actor, uint32_t index,
                uint32_t what, uint32_t min, uint32_t max)
{
    struct agent_msg msg = { .round = actor->round };

    if (!actor->connected) {
        struct agent_msg hello = hello_of(index, min, max);
        int64_t id;

        if (what % 4 != 0) {
            return;
        }
        id = coordinator_connected(&job->coordinator, "", job->now_ms);
        assert_true(id >= 0);
        *actor = (struct actor){ .connected = true, .id = (uint32_t)id };
        (void)coordinator_take(&job->coordinator, actor->id, &hello,
                               job->now_ms);
        return;
    }
    msg.incarnation = job->coordinator.members.rows[actor->id].incarnation;
    msg.text = "text";
    msg.report = "";
    switch (what % 12) {
    case 0:
        if (index != 0) {
            coordinator_lost(&job->coordinator, actor->id, "lost", job->now_ms);
            actor->connected = false;
            actor->running = false;
        }
        return;
    case 1:
        msg.type = AGENT_FAILED;
        msg.code = 3;
        break;
    case 2:
        msg.type = AGENT_LEAVE;
        break;
    case 3:
        msg.type = AGENT_STOP_JOB;
        msg.code = 143;
        msg.signo = SIGTERM;
        if (what % 96 != 3) {
            msg.type = AGENT_HEARTBEAT;
        }
        break;
    case 4:
    case 5:
    case 6:
        if (actor->over) {
            msg.type = AGENT_BYE;
            if (index == 0) {
                return;
            }
            (void)coordinator_take(&job->coordinator, actor->id, &msg,
                                   job->now_ms);
            actor->connected = false;
            return;
        }
        msg.type = AGENT_ENDED;
        actor->running = false;
        break;
    default:
        msg.type = AGENT_HEARTBEAT;
        break;
    }
    (void)coordinator_take(&job->coordinator, actor->id, &msg, job->now_ms);
}

static void whatever_happens_no_rank_is_held_twice_and_jobs_end(void **state)
{
    uint64_t seed = 7;
    int run;

    (void)state;
    for (run = 0; run < 2000; run++) {
        uint32_t max = 1 + random_next(&seed) % 5;
        uint32_t min = 1 + random_next(&seed) % max;
        struct actor actors[NODES_MAX / 2] = { { .connected = true } };
        struct agent_msg hello = hello_of(0, min, max);
        struct coordinator_config config = config_of(min, max);
        struct job job = { .now_ms = 1000 };
        int step;

        config.max_restarts = random_next(&seed) % 4;
        assert_int_equal(
            coordinator_init(&job.coordinator, &config, job.now_ms), 0);
        assert_int_equal(coordinator_take(&job.coordinator, MEMBER_LOCAL,
                                          &hello, job.now_ms),
                         0);
        act_on_messages(&job, actors, NODES_MAX / 2);
        for (step = 0;
             step < 100000 && job.coordinator.phase != COORDINATOR_ENDED;
             step++) {
            uint32_t i = random_next(&seed) % (NODES_MAX / 2);

            act(&job, &actors[i], i, random_next(&seed), min, max);
            act_on_messages(&job, actors, NODES_MAX / 2);
            assert_one_round(&job, actors, NODES_MAX / 2);
            job.now_ms += random_next(&seed) % 300;
            (void)coordinator_tick(&job.coordinator, job.now_ms);
            act_on_messages(&job, actors, NODES_MAX / 2);
            assert_one_round(&job, actors, NODES_MAX / 2);
        }
        assert_int_equal(job.coordinator.phase, COORDINATOR_ENDED);
        assert_true(actors[0].over);
        coordinator_destroy(&job.coordinator);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node_starts_at_once),
        cmocka_unit_test(ranks_asked_for_are_had_whoever_comes_first),
        cmocka_unit_test(without_ranks_names_are_in_natural_order),
        cmocka_unit_test(nodes_without_a_rank_fill_the_gaps),
        cmocka_unit_test(roles_are_counted_over_nodes),
        cmocka_unit_test(missing_nodes_are_named_on_every_node_that_came),
        cmocka_unit_test(who_does_not_belong_is_refused_with_both_sides_named),
        cmocka_unit_test(two_nodes_with_one_rank_are_told),
        cmocka_unit_test(one_node_too_many_is_refused),
        cmocka_unit_test(who_says_no_hello_is_cut_off),
        cmocka_unit_test(success_everywhere_is_0_and_the_host_hears_it_last),
        cmocka_unit_test(a_failure_stops_all_and_its_code_is_everybodys),
        cmocka_unit_test(restarts_are_the_jobs),
        cmocka_unit_test(what_no_restart_can_help_ends_the_job),
        cmocka_unit_test(messages_of_another_round_are_not_obeyed),
        cmocka_unit_test(the_first_rank_done_is_told_to_the_others),
        cmocka_unit_test(a_stop_signal_stops_all_nodes),
        cmocka_unit_test(a_second_signal_kills_on_all_nodes),
        cmocka_unit_test(a_stop_before_workers_run_ends_the_job),
        cmocka_unit_test(a_node_lost_during_a_stop_is_no_failure_of_the_job),
        cmocka_unit_test(a_time_limit_wins),
        cmocka_unit_test(a_lost_node_ends_a_job_without_restarts),
        cmocka_unit_test(silence_is_death_after_the_lease_and_no_earlier),
        cmocka_unit_test(our_own_pause_kills_nobody),
        cmocka_unit_test(a_lost_node_uses_up_a_restart_and_is_waited_for),
        cmocka_unit_test(no_round_begins_within_a_second_of_a_loss),
        cmocka_unit_test(last_call_waits_for_more_nodes),
        cmocka_unit_test(the_last_place_begins_the_round_at_once),
        cmocka_unit_test(who_comes_later_gets_a_new_round_and_no_restart),
        cmocka_unit_test(who_comes_when_work_is_done_waits_for_the_end),
        cmocka_unit_test(a_spare_takes_the_place_of_a_lost_node),
        cmocka_unit_test(a_node_may_leave_an_elastic_job),
        cmocka_unit_test(a_newcomer_may_wait_for_a_silent_nodes_death),
        cmocka_unit_test(a_newcomer_is_refused_when_the_silent_node_lives),
        cmocka_unit_test(a_node_lost_while_joining_is_told_and_may_come_back),
        cmocka_unit_test(who_does_not_confirm_the_end_is_not_waited_for),
        cmocka_unit_test(who_comes_after_the_end_is_told_of_it),
        cmocka_unit_test(whatever_happens_no_rank_is_held_twice_and_jobs_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
