/*
 * What flaunch does as torchrun does: macros, shares of GPUs and CPUs, timers,
 * events.
 */
#include "launcher/affinity.h"
#include "launcher/command.h"
#include "launcher/events.h"
#include "launcher/gpu_share.h"
#include "launcher/template.h"
#include "launcher/torchrun_options.h"
#include "launcher/uuid.h"
#include "launcher/watchdog.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- macros ------------------------------------------------------------- */

static void names_in_templates_are_filled_in(void **state)
{
    static const struct template_value values[] = { { "local_rank", "12" },
                                                    { "a", "" } };
    static const struct {
        const char *pattern;
        const char *text;
    } rows[] = {
        { "", "" },
        { "${local_rank}", "12" },
        { "$local_rank", "12" },
        { "x-${local_rank}.log", "x-12.log" },
        { "$$", "$" },
        { "$$local_rank", "$local_rank" },
        { "$$$local_rank", "$12" },
        { "$", "$" },
        { "$x ${x}", "$x ${x}" },
        { "$local_ranks ${LOCAL_RANK} ${local_rank", "$local_ranks "
                                                     "${LOCAL_RANK} "
                                                     "${local_rank" },
        { "${a}$a|", "|" },
        { "$1local_rank ${} $-", "$1local_rank ${} $-" },
    };
    char text[64];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t len = strlen(rows[i].text);

        assert_int_equal(
            template_fill(rows[i].pattern, values, 2, text, sizeof(text)), len);
        assert_string_equal(text, rows[i].text);
        /* Cut, and only measured. */
        assert_int_equal(template_fill(rows[i].pattern, values, 2, text, 2),
                         len);
        assert_true(strlen(text) <= 1);
        assert_int_equal(template_fill(rows[i].pattern, values, 2, NULL, 0),
                         len);
    }
}

static void a_program_keeps_its_name_and_arguments_are_filled_in(void **state)
{
    static char name[] = "p${local_rank}";
    static char argument[] = "${local_rank}";
    char *argv[] = { name, argument, NULL };
    const struct command command = { .argv = argv };
    char **mine = command_expand(&command, 3);

    (void)state;
    assert_non_null(mine);
    assert_string_equal(mine[0], "p${local_rank}");
    assert_string_equal(mine[1], "3");
    assert_null(mine[2]);
    command_free_expanded(mine);
}

/* --- GPUs --------------------------------------------------------------- */

static void each_worker_gets_one_visible_gpu(void **state)
{
    struct err err = { 0 };
    char **gpus = NULL;

    (void)state;
    assert_int_equal(gpu_share_make("4, GPU-aa ,7", 2, &gpus, &err), 0);
    assert_string_equal(gpus[0], "4");
    assert_string_equal(gpus[1], "GPU-aa");
    gpu_share_destroy(gpus, 2);
    assert_int_equal(gpu_share_make(NULL, 2, &gpus, &err), 0);
    assert_string_equal(gpus[1], "1");
    gpu_share_destroy(gpus, 2);
    assert_int_equal(gpu_share_make("4", 2, &gpus, &err), -EINVAL);
    assert_non_null(strstr(err.text, "CUDA_VISIBLE_DEVICES=4 is too short"));
}

/* --- CPUs --------------------------------------------------------------- */

/*
 * Two sockets of two nodes; a node has two cores of two CPUs and, but for the
 * last, one cache for each core.
 */
static const struct affinity_cpu sixteen[] = {
    { 0, 0, 0, 0, 0 },   { 1, 1, 1, 0, 0 },  { 2, 2, 2, 1, 0 },
    { 3, 3, 3, 1, 0 },   { 4, 4, 4, 2, 1 },  { 5, 5, 5, 2, 1 },
    { 6, 6, 6, 3, 1 },   { 7, 7, 6, 3, 1 },  { 8, 0, 0, 0, 0 },
    { 9, 1, 1, 0, 0 },   { 10, 2, 2, 1, 0 }, { 11, 3, 3, 1, 0 },
    { 12, 4, 4, 2, 1 },  { 13, 5, 5, 2, 1 }, { 14, 6, 6, 3, 1 },
    { 100, 7, 6, 3, 1 },
};

static void cpus_are_chosen_by_gpu(void **state)
{
    static const uint32_t gpu_nodes[] = { 0, 0, 3, 3, 3 };
    static const uint32_t own[] = { 0, 1, 2 };
    static const uint32_t reversed[] = { 4, 0, 0 };
    static const struct {
        enum affinity_mode mode;
        const uint32_t *gpus;
        const char *cpus[3]; /* NULL: refused */
    } rows[] = {
        { AFFINITY_NODE, own, { "0-1,8-9", "0-1,8-9", "6-7,14,100" } },
        { AFFINITY_NODE, reversed, { "6-7,14,100", "0-1,8-9", "0-1,8-9" } },
        { AFFINITY_NODE, NULL, { "0-1,8-9", "2-3,10-11", "4-5,12-13" } },
        { AFFINITY_SOCKET, own, { "0-3,8-11", "0-3,8-11", "4-7,12-14,100" } },
        { AFFINITY_EXCLUSIVE, NULL, { "0-1,8-9", "2-3,10-11", "4-5,12-13" } },
        /* Three GPUs share node 3, which has two cores. */
        { AFFINITY_EXCLUSIVE, own, { NULL, NULL, NULL } },
        { AFFINITY_CORE_COMPLEX, own, { "0,8", "1,9", "6-7,14,100" } },
    };
    const struct affinity_machine machine = {
        .cpus = sixteen, .n_cpus = 16, .gpu_nodes = gpu_nodes, .n_gpus = 5
    };
    struct err err = { 0 };
    char text[64];
    size_t i;
    uint32_t w;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cpu_masks masks = { 0 };
        int rc = affinity_choose(rows[i].mode, &machine, rows[i].gpus, 3,
                                 &masks, &err);

        assert_int_equal(rc, rows[i].cpus[0] != NULL ? 0 : -EINVAL);
        for (w = 0; w < 3 && rc == 0; w++) {
            cpu_masks_print(&masks, w, text, sizeof(text));
            assert_string_equal(text, rows[i].cpus[w]);
        }
        cpu_masks_destroy(&masks);
    }
    assert_non_null(strstr(err.text, "local rank 2: 3 share NUMA node 3"));
}

static void cores_that_do_not_divide_go_to_the_first(void **state)
{
    static const struct affinity_cpu five[] = {
        { 0, 0, 0, 0, 0 }, { 1, 1, 0, 0, 0 }, { 2, 2, 0, 0, 0 },
        { 3, 3, 0, 0, 0 }, { 4, 4, 0, 0, 0 },
    };
    const struct affinity_machine machine = { .cpus = five, .n_cpus = 5 };
    struct cpu_masks masks = { 0 };
    struct err err;
    char text[3][32];
    uint32_t w;

    (void)state;
    assert_int_equal(
        affinity_choose(AFFINITY_EXCLUSIVE, &machine, NULL, 3, &masks, &err),
        0);
    assert_int_equal(masks.bytes, 8);
    for (w = 0; w < 3; w++) {
        cpu_masks_print(&masks, w, text[w], sizeof(text[w]));
    }
    assert_string_equal(text[0], "0-1");
    assert_string_equal(text[1], "2-3");
    assert_string_equal(text[2], "4");
    cpu_masks_destroy(&masks);
}

static void modes_have_names(void **state)
{
    enum affinity_mode mode = AFFINITY_NODE;

    (void)state;
    assert_int_equal(affinity_mode_parse("core-complex", &mode), 0);
    assert_int_equal(mode, AFFINITY_CORE_COMPLEX);
    assert_int_equal(affinity_mode_parse("Node", &mode), -EINVAL);
}

/* --- timers ------------------------------------------------------------- */

static int take(struct watchdog *watchdog, const char *line)
{
    struct err err;

    return watchdog_take(watchdog, line, strlen(line), &err);
}

static void requests_for_timers_are_read(void **state)
{
    static const char *const bad[] = {
        "",
        "x",
        "[]",
        "{}",
        "{\"version\": 2, \"pid\": 5, \"scope_id\": \"a\", "
        "\"expiration_time\": 1, \"signal\": 9}",
        "{\"version\": 1, \"pid\": 0, \"scope_id\": \"a\", "
        "\"expiration_time\": 1, \"signal\": 9}",
        "{\"version\": 1, \"pid\": 99999999999, \"scope_id\": \"a\", "
        "\"expiration_time\": 1, \"signal\": 9}",
        "{\"version\": 1, \"pid\": 5, \"scope_id\": 7, "
        "\"expiration_time\": 1, \"signal\": 9}",
        "{\"version\": 1, \"pid\": 5, \"scope_id\": \"a\", "
        "\"expiration_time\": \"1\", \"signal\": 9}",
        "{\"version\": 1, \"pid\": 5, \"scope_id\": \"a\", "
        "\"expiration_time\": 1, \"signal\": 900}",
        "{\"version\": 1, \"pid\": 5, \"scope_id\": \"a\", "
        "\"expiration_time\": 1, \"signal\": 9} x",
    };
    struct watchdog watchdog = { 0 };
    double next = 0;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(take(&watchdog, bad[i]), -EINVAL);
    }
    assert_false(watchdog_next(&watchdog, &next));
    watchdog_clear(&watchdog);
}

#define TIMER(pid, scope, at, signo)                                           \
    "{\"version\": 1, \"pid\": " #pid ", \"scope_id\": \"" scope               \
    "\", \"expiration_time\": " #at ", \"signal\": " #signo "}"

static void timers_expire_unless_released(void **state)
{
    struct watchdog watchdog = { 0 };
    struct watchdog_timer timer;
    double next = 0;

    (void)state;
    assert_int_equal(take(&watchdog, TIMER(5, "a", 100.5, 9)), 0);
    assert_int_equal(take(&watchdog, TIMER(5, "b", 90, 0)), 0);
    assert_int_equal(take(&watchdog, TIMER(5, "c", 95, 15)), 0);
    assert_int_equal(take(&watchdog, TIMER(6, "a", 80, 9)), 0);
    assert_int_equal(take(&watchdog, TIMER(6, "a", -1, 0)), 0); /* released */
    assert_int_equal(take(&watchdog, TIMER(7, "a", 200, 9)), 0);
    assert_int_equal(take(&watchdog, TIMER(7, "a", 300, -3)), 0); /* anew */
    assert_true(watchdog_next(&watchdog, &next));
    assert_true(next == 90);
    assert_false(watchdog_expired(&watchdog, 89, &timer));
    /* The first with a signal tells, and all of the process are gone. */
    assert_true(watchdog_expired(&watchdog, 101, &timer));
    assert_int_equal(timer.pid, 5);
    assert_int_equal(timer.signo, 15);
    assert_string_equal(timer.scope, "c");
    assert_false(watchdog_expired(&watchdog, 101, &timer));
    assert_true(watchdog_expired(&watchdog, 300, &timer));
    assert_int_equal(timer.pid, 7);
    assert_int_equal(timer.signo, 0);
    assert_false(watchdog_next(&watchdog, &next));
    watchdog_clear(&watchdog);
}

static void timers_have_a_limit(void **state)
{
    struct watchdog watchdog = { 0 };
    char line[128];
    int i;

    (void)state;
    for (i = 0; i <= WATCHDOG_TIMERS_MAX; i++) {
        (void)snprintf(line, sizeof(line),
                       "{\"version\": 1, \"pid\": 5, \"scope_id\": \"%d\", "
                       "\"expiration_time\": 1, \"signal\": 9}",
                       i);
        assert_int_equal(take(&watchdog, line),
                         i < WATCHDOG_TIMERS_MAX ? 0 : -ENOSPC);
    }
    watchdog_clear(&watchdog);
}

/* --- events ------------------------------------------------------------- */

static void events_read_as_torchruns(void **state)
{
    const struct event_job job = { .run_id = "id",
                                   .role = "default",
                                   .hostname = "h",
                                   .backend = "c10d",
                                   .entry_point = "python3",
                                   .placed = true,
                                   .group_rank = 1,
                                   .group_world_size = 2,
                                   .restarts = 3,
                                   .seconds = 4 };
    json_t *error = json_loads("{\"message\": \"\\u00e9\"}", 0, NULL);
    const struct event_worker worker = {
        .place = { .rank = 5,
                   .local_rank = 1,
                   .role_rank = 5,
                   .role_world_size = 8 },
        .pid = 77,
        .failed = true,
        .exit_code = -15,
        .error = error,
    };
    const struct event event = { .state = "FAILED",
                                 .worker = &worker,
                                 .duration_ms = -1 };
    struct buf text = { 0 };
    char *stamp;

    (void)state;
    assert_int_equal(event_print(&job, &event, &text), 0);
    assert_int_equal(buf_append_u8(&text, '\0'), 0);
    stamp = strstr((char *)text.data, "\"timestamp\": ");
    assert_non_null(stamp);
    stamp += strlen("\"timestamp\": ");
    assert_true(strspn(stamp, "0123456789") >= 10);
    assert_memory_equal(text.data,
                        "{\"name\": \"torchelastic.worker.status.FAILED\", "
                        "\"source\": \"WORKER\", \"timestamp\": ",
                        75);
    assert_string_equal(
        stamp + strspn(stamp, "0123456789"),
        ", \"metadata\": {\"run_id\": \"id\", \"global_rank\": 5, "
        "\"group_rank\": 1, \"worker_id\": \"77\", \"role\": \"default\", "
        "\"hostname\": \"h\", \"state\": \"FAILED\", \"total_run_time\": 4, "
        "\"rdzv_backend\": \"c10d\", \"raw_error\": \"{\\\"message\\\": "
        "\\\"\\\\u00E9\\\"}\", \"metadata\": \"{\\\"group_world_size\\\": 2, "
        "\\\"entry_point\\\": \\\"python3\\\", \\\"local_rank\\\": [1], "
        "\\\"role_rank\\\": [5], \\\"role_world_size\\\": [8], "
        "\\\"exit_code\\\": [-15], \\\"worker_pid\\\": [77]}\", "
        "\"agent_restarts\": 3, \"duration_ms\": null}}\n");
    json_decref(error);
    buf_destroy(&text);
}

static void events_take_any_bytes(void **state)
{
    const struct event_job job = { .run_id = "\xff\"\n",
                                   .role = "\xc3\xa9",
                                   .hostname = "h",
                                   .backend = "static",
                                   .entry_point = "\x01" };
    const struct event event = { .state = "FAILED",
                                 .duration_ms = 0.5,
                                 .error = "\xfe" };
    struct buf text = { 0 };
    const json_t *metadata;
    json_t *line;

    (void)state;
    assert_int_equal(event_print(&job, &event, &text), 0);
    line = json_loadb((char *)text.data, text.len - 1, 0, NULL);
    assert_non_null(line);
    metadata = json_object_get(line, "metadata");
    assert_string_equal(json_string_value(json_object_get(metadata, "run_id")),
                        "\xef\xbf\xbd\"\n");
    assert_string_equal(json_string_value(json_object_get(metadata, "role")),
                        "\xc3\xa9");
    assert_true(json_is_null(json_object_get(metadata, "group_rank")));
    json_decref(line);
    buf_destroy(&text);
}

static void uuids_are_random_ones(void **state)
{
    char a[UUID_TEXT_SIZE];
    char b[UUID_TEXT_SIZE];

    (void)state;
    uuid_make(a);
    uuid_make(b);
    assert_int_equal(strlen(a), 36);
    assert_int_equal(a[14], '4');
    assert_non_null(strchr("89ab", a[19]));
    assert_string_not_equal(a, b);
}

/* --- options without effect --------------------------------------------- */

static int check(enum option_id id, const char *text)
{
    struct options options = { 0 };
    enum event_log log;
    struct err err;
    int rc;

    options.values[OPT_MONITOR_INTERVAL].text = "0.1";
    options.values[OPT_START_METHOD].text = "spawn";
    options.values[OPT_EVENT_LOG_HANDLER].text = "null";
    options.values[id].text = text;
    rc = torchrun_options_check(&options, &err);
    return rc < 0 ? rc : torchrun_options_events(&options, &log, &err);
}

static void what_has_no_effect_is_checked_all_the_same(void **state)
{
    static const char *const intervals[] = { "1", ".5", "1e-2", " 2 ", "+3" };
    static const char *const bad[] = { "",    "0",   "-1",  "inf", "nan",
                                       "0x1", "1 s", "abc", "1,5" };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(intervals) / sizeof(intervals[0]); i++) {
        assert_int_equal(check(OPT_MONITOR_INTERVAL, intervals[i]), 0);
    }
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(check(OPT_MONITOR_INTERVAL, bad[i]), -EINVAL);
    }
    assert_int_equal(check(OPT_START_METHOD, "forkserver"), 0);
    assert_int_equal(check(OPT_START_METHOD, "Spawn"), -EINVAL);
    assert_int_equal(check(OPT_LOGS_SPECS, "x"), -EINVAL);
    assert_int_equal(check(OPT_EVENT_LOG_HANDLER, "console"), 0);
    assert_int_equal(check(OPT_EVENT_LOG_HANDLER, "dynamic_rendezvous"), 0);
    assert_int_equal(check(OPT_EVENT_LOG_HANDLER, ""), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_in_templates_are_filled_in),
        cmocka_unit_test(a_program_keeps_its_name_and_arguments_are_filled_in),
        cmocka_unit_test(each_worker_gets_one_visible_gpu),
        cmocka_unit_test(cpus_are_chosen_by_gpu),
        cmocka_unit_test(cores_that_do_not_divide_go_to_the_first),
        cmocka_unit_test(modes_have_names),
        cmocka_unit_test(requests_for_timers_are_read),
        cmocka_unit_test(timers_expire_unless_released),
        cmocka_unit_test(timers_have_a_limit),
        cmocka_unit_test(events_read_as_torchruns),
        cmocka_unit_test(events_take_any_bytes),
        cmocka_unit_test(uuids_are_random_ones),
        cmocka_unit_test(what_has_no_effect_is_checked_all_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
