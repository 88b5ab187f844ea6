/*
 * The 1st, 2nd, ... n-th allocation or libuv call fails: each time an error
 * comes back or the work is done, nothing leaks, and the loop closes.
 */
#include "common/clock.h"
#include "common/resolve.h"
#include "common/store_host.h"
#include "launcher/affinity.h"
#include "launcher/command.h"
#include "launcher/events.h"
#include "launcher/gpu_share.h"
#include "launcher/guard_link.h"
#include "launcher/guard_proto.h"
#include "launcher/signals.h"
#include "launcher/streams.h"
#include "launcher/watchdog.h"
#include "launcher/worker_env.h"
#include "tests/fault/every_fault.h"
#include "tests/unit/unit.h"
#include "worker/meet.h"
#include "worker/store_client.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool store_scenario(void)
{
    static const uint8_t data[100];
    uint64_t deadline_ms = clock_deadline(limit_ms);
    struct store_client client = { .fd = -1 };
    struct store_host *host = NULL;
    struct buf value = { 0 };
    int64_t sum = 0;
    struct net_where where = { .scope = NET_LOOPBACK };
    struct store_setup setup = { .conf = STORE_CONF_DEFAULT };
    int rc;

    assert_int_equal(net_listeners_open(&where, 1, &setup.listeners, NULL), 0);
    rc = store_host_start(&setup, &host, NULL);
    if (rc < 0) {
        assert_null(host);
        return false;
    }
    rc = store_client_connect(&client, "127.0.0.1", setup.listeners.port,
                              deadline_ms, NULL);
    if (rc == 0) {
        rc =
            store_client_set(&client, "k", (struct bytes){ data, sizeof(data) },
                             deadline_ms, NULL);
    }
    if (rc == 0) {
        rc = store_client_get(&client, "k", deadline_ms, &value, NULL);
    }
    if (rc == 0) {
        assert_int_equal(value.len, sizeof(data));
        rc = store_client_add(&client, "n", 2, deadline_ms, &sum, NULL);
    }
    assert_true(rc < 0 || sum == 2);
    store_client_close(&client);
    buf_destroy(&value);
    store_host_stop(host);
    return rc == 0;
}

static void a_store_outlives_every_fault(void **state)
{
    (void)state;
    every_fault(store_scenario);
}

/* Two ranks of one thread: a file in PyTorch's format. */
static bool file_scenario(void)
{
    struct detected detected = { .channel = CHANNEL_FILE, .world_size = 2 };
    uint64_t deadline_ms = clock_deadline(LONG_MS);
    struct meet meets[2] = { { 0 } };
    char value[64] = "";
    int rc;
    int i;

    (void)snprintf(detected.path, sizeof(detected.path),
                   "/tmp/flaunch-fault-%d", (int)getpid());
    rc = meet_open(&meets[0], &detected, deadline_ms, NULL);
    if (rc == 0) {
        rc = meet_open(&meets[1], &detected, deadline_ms, NULL);
    }
    if (rc == 0) {
        rc = meets[0].ops->put(&meets[0], "k", "v", deadline_ms, NULL);
    }
    if (rc == 0) {
        rc = meets[1].ops->get(&meets[1], "k", value, sizeof(value),
                               deadline_ms, NULL);
        assert_true(rc < 0 || strcmp(value, "v") == 0);
    }
    for (i = 0; i < 2; i++) {
        meet_close(&meets[i], deadline_ms);
    }
    (void)unlink(detected.path);
    return rc == 0;
}

static void a_file_outlives_every_fault(void **state)
{
    (void)state;
    every_fault(file_scenario);
}

/* A name, looked up on a helper thread. */
static bool look_up_scenario(void)
{
    struct addrinfo *list = NULL;
    int rc =
        resolve_host("localhost", 80, clock_deadline(LONG_MS), &list, NULL);

    if (rc == 0) {
        assert_non_null(list);
        freeaddrinfo(list);
    }
    return rc == 0;
}

static void a_look_up_outlives_every_fault(void **state)
{
    (void)state;
    every_fault(look_up_scenario);
}

static void nothing(void *arg)
{
    (void)arg;
}

static void no_message(const struct guard_msg *msg, const int *fds, void *arg)
{
    (void)msg;
    (void)fds;
    (void)arg;
}

static bool link_scenario(void)
{
    static const struct guard_link_events events = { no_message, nothing,
                                                     nothing };
    struct guard_msg msg = { .type = GUARD_STOP, .grace_ms = 1 };
    static struct guard_link link;
    uv_loop_t loop;
    int agent_fd;
    int guard_fd;
    int rc;

    rc = uv_loop_init(&loop);
    if (rc < 0) {
        return false;
    }
    assert_int_equal(guard_pair_open(false, &agent_fd, &guard_fd), 0);
    rc = guard_link_start(&link, &loop, agent_fd, &events, NULL);
    if (rc == 0) {
        rc = guard_link_send(&link, &msg);
        guard_link_stop(&link);
        guard_link_stop(&link);
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    (void)close(agent_fd);
    (void)close(guard_fd);
    return rc == 0;
}

static void a_guard_link_outlives_every_fault(void **state)
{
    (void)state;
    every_fault(link_scenario);
}

static void no_signal(int signo, void *arg)
{
    (void)signo;
    (void)arg;
}

static bool signals_scenario(void)
{
    static struct signals signals;
    static const int stop[] = { SIGINT, SIGTERM, 0 };
    static const int forward[] = { SIGUSR1, 0 };
    struct inherited inherited = { 0 };
    uv_loop_t loop;
    int rc;

    rc = uv_loop_init(&loop);
    if (rc < 0) {
        return false;
    }
    rc = signals_start(&signals, &loop, &inherited, stop, forward, no_signal,
                       nothing, NULL);
    signals_stop(&signals);
    signals_stop(&signals);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    return rc == 0;
}

static void signals_outlive_every_fault(void **state)
{
    (void)state;
    every_fault(signals_scenario);
}

struct heard {
    struct streams *streams;
    int n_drained;
    int n_flushed;
    int n_closed;
};

static void heard_drained(void *arg)
{
    struct heard *heard = arg;

    heard->n_drained++;
    streams_flush(heard->streams);
}

static void heard_flushed(void *arg)
{
    struct heard *heard = arg;

    heard->n_flushed++;
    streams_stop(heard->streams);
}

static void heard_closed(void *arg)
{
    ((struct heard *)arg)->n_closed++;
}

static int remove_one(const char *path, const struct stat *status, int kind,
                      struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

/* A pipe with a line in it, and a file that is teed, both to our stdout. */
static int streams_run(uv_loop_t *loop, const struct stream_plan *plan,
                       const struct log_screen *screen)
{
    static const struct streams_events events = { heard_drained, heard_flushed,
                                                  nothing, heard_closed };
    static struct streams streams;
    struct heard heard = { .streams = &streams };
    int fds[2];
    int rc;

    rc = streams_start(&streams, loop, screen, &events, &heard);
    if (rc == 0) {
        rc = streams_attempt(&streams, plan);
    }
    if (rc == 0) {
        assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
        assert_int_equal(write(fds[1], "\n", 1), 1);
        (void)close(fds[1]);
        streams_take(&streams, 0, fds, 1);
        streams_worker_ended(&streams, 0);
        streams_drain(&streams);
    } else {
        streams_stop(&streams);
    }
    (void)uv_run(loop, UV_RUN_DEFAULT);
    assert_int_equal(heard.n_drained, rc == 0);
    assert_int_equal(heard.n_flushed, rc == 0);
    assert_true(heard.n_closed == 1 || (rc < 0 && streams.open_parts == 0));
    return rc;
}

static bool streams_scenario(void)
{
    struct log_choice choice = { .tee = LOG_ERR };
    struct log_config config = { .choices = &choice,
                                 .screen = { .prefix = true },
                                 .prefix = "",
                                 .tee_prefix = "[${rank}]:" };
    struct stream_plan plan = { 0 };
    struct log_dir dir = { 0 };
    const struct stream_job job = { .role = "r" };
    char base[] = "/tmp/flaunch-fault.XXXXXX";
    uv_loop_t loop;
    int rc;

    assert_non_null(mkdtemp(base));
    rc = uv_loop_init(&loop);
    if (rc == 0) {
        rc = log_dir_make(base, "id", &dir, NULL);
        if (rc == 0) {
            rc = stream_plan_make(&config, 1, &job, &dir, &plan, NULL);
        }
        if (rc == 0) {
            rc = streams_run(&loop, &plan, &config.screen);
        }
        (void)uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
    }
    stream_plan_destroy(&plan);
    log_dir_end(&dir);
    (void)wrap_stop();
    assert_int_equal(nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    return rc == 0;
}

static void streams_outlive_every_fault(void **state)
{
    (void)state;
    every_fault(streams_scenario);
}

static bool plan_scenario(void)
{
    static char a[] = "A=1";
    char *outer[] = { a, NULL };
    struct job_env job = { .master_addr = "127.0.0.1",
                           .master_port = 1,
                           .role = "r",
                           .run_id = "i",
                           .signals = "TERM",
                           .round = 1 };
    const struct node_place node = ranks_one_node(1);
    struct place place = ranks_place(&node, 0);
    struct env_list shared = { 0 };
    struct env_list own = { 0 };
    struct guard_stream streams[1][2] = { { { .path = "" }, { .path = "" } } };
    char **argvs[] = { outer };
    struct guard_plan plan = { .path = "p",
                               .keep = "",
                               .argvs = argvs,
                               .n_argvs = 1,
                               .n_workers = 1,
                               .streams = streams,
                               .cpus = (const uint8_t *)"\1\0\0\0\0\0\0\0",
                               .cpu_bytes = 8 };
    struct guard_plan read = { 0 };
    struct buf bytes = { 0 };
    int rc;

    rc = worker_env_shared(outer, &job, &shared);
    if (rc == 0) {
        rc = worker_env_own(&place, "/x.json", "0", &own);
    }
    if (rc == 0) {
        plan.base_env = shared.strings;
        plan.worker_env = &own.strings;
        rc = guard_plan_encode(&bytes, &plan);
    }
    if (rc == 0) {
        rc = guard_plan_decode(bytes.data, bytes.len, &read);
    }
    if (rc == 0) {
        assert_string_equal(read.base_env[0], "A=1");
    }
    guard_plan_destroy(&read);
    env_list_destroy(&shared);
    env_list_destroy(&own);
    buf_destroy(&bytes);
    return rc == 0;
}

static void a_plan_outlives_every_fault(void **state)
{
    (void)state;
    every_fault(plan_scenario);
}

/* What a worker has of its own, and what it asks of the watchdog. */
static bool own_scenario(void)
{
    static const char line[] = "{\"version\": 1, \"pid\": 5, \"scope_id\": "
                               "\"a\", \"expiration_time\": 1, \"signal\": 9}";
    static const struct affinity_cpu cpus[] = { { 0, 0, 0, 0, 0 },
                                                { 1, 1, 1, 0, 0 } };
    const struct affinity_machine machine = { .cpus = cpus, .n_cpus = 2 };
    static char argument[] = "$local_rank";
    char *argv[] = { argument, argument, NULL };
    const struct command command = { .argv = argv };
    struct watchdog watchdog = { 0 };
    struct cpu_masks masks = { 0 };
    char **expanded = command_expand(&command, 1);
    char **gpus = NULL;
    struct err err;
    int rc = expanded != NULL ? 0 : -ENOMEM;

    if (rc == 0) {
        rc = gpu_share_make("3,4", 2, &gpus, &err);
    }
    if (rc == 0) {
        rc = affinity_choose(AFFINITY_EXCLUSIVE, &machine, NULL, 2, &masks,
                             &err);
    }
    if (rc == 0) {
        rc = watchdog_take(&watchdog, line, sizeof(line) - 1, &err);
    }
    assert_true(rc == 0 || rc == -ENOMEM || rc == -EINVAL);
    watchdog_clear(&watchdog);
    cpu_masks_destroy(&masks);
    gpu_share_destroy(gpus, 2);
    command_free_expanded(expanded);
    return rc == 0;
}

static void what_a_worker_owns_outlives_every_fault(void **state)
{
    (void)state;
    every_fault(own_scenario);
}

static bool event_scenario(void)
{
    const struct event_job job = { .run_id = "i",
                                   .role = "r",
                                   .hostname = "h",
                                   .backend = "b",
                                   .entry_point = "e" };
    const struct event_worker worker = { .failed = true };
    const struct event event = { .state = "FAILED",
                                 .worker = &worker,
                                 .duration_ms = 1 };
    struct buf text = { 0 };
    int rc = event_print(&job, &event, &text);

    assert_true(rc == 0 || text.len == 0);
    buf_destroy(&text);
    return rc == 0;
}

static void an_event_outlives_every_fault(void **state)
{
    (void)state;
    every_fault(event_scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_outlives_every_fault),
        cmocka_unit_test(a_file_outlives_every_fault),
        cmocka_unit_test(a_look_up_outlives_every_fault),
        cmocka_unit_test(a_guard_link_outlives_every_fault),
        cmocka_unit_test(signals_outlive_every_fault),
        cmocka_unit_test(streams_outlive_every_fault),
        cmocka_unit_test(a_plan_outlives_every_fault),
        cmocka_unit_test(what_a_worker_owns_outlives_every_fault),
        cmocka_unit_test(an_event_outlives_every_fault),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
