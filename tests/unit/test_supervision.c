/*
 * Decisions about workers: states, the first failure, exit codes, sentences,
 * environment.
 */
#include "launcher/agent_state.h"
#include "launcher/exit_status.h"
#include "launcher/failure.h"
#include "launcher/nproc.h"
#include "launcher/ranks.h"
#include "launcher/signal_names.h"
#include "launcher/worker_env.h"
#include "tests/unit/group.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define EXITED(code) ((code) << 8)
#define SIGNALLED(signo) (signo)

static bool end(struct worker_group *group, uint32_t worker, uint32_t status)
{
    return group_end(group, worker, status, 2200000000);
}

/* One that is stopped ends after the stop. */
static bool end_stopped(struct worker_group *group, uint32_t worker,
                        uint32_t status)
{
    return group_end(group, worker, status, GROUP_STOP_NS + 1);
}

static void the_first_failure_counts(void **state)
{
    struct outcome outcome = { 0 };
    struct worker_group group;
    char text[256];

    (void)state;
    group_start(&group, 4);
    assert_false(end(&group, 0, 0));
    assert_true(end(&group, 2, EXITED(7)));
    worker_group_stopped(&group, GROUP_STOP_NS);
    worker_group_stopped(&group,
                         GROUP_STOP_NS); /* then killed: no more are stopped */
    assert_int_equal(group.n_stopped, 2);
    assert_false(end_stopped(&group, 1, SIGNALLED(SIGTERM)));
    assert_false(end_stopped(&group, 3, EXITED(9)));
    outcome.group = &group;
    assert_int_equal(outcome_exit_code(&outcome), 7);
    outcome_describe(&outcome, text, sizeof(text));
    assert_string_equal(text, "rank 2 (pid 102) exited with code 7 after "
                              "1.2 s; 2 others stopped");
    worker_group_destroy(&group);
}

static void all_well_is_0_and_says_nothing(void **state)
{
    struct outcome outcome = { 0 };
    struct worker_group group;
    char text[256];

    (void)state;
    group_start(&group, 2);
    assert_false(end(&group, 0, 0));
    assert_false(end(&group, 1, 0));
    outcome.group = &group;
    assert_int_equal(outcome_exit_code(&outcome), 0);
    outcome_describe(&outcome, text, sizeof(text));
    assert_string_equal(text, "");
    worker_group_destroy(&group);
}

static void a_failed_exec_has_its_codes(void **state)
{
    static const struct {
        enum guard_step step;
        uint32_t error;
        int code;
        const char *words;
    } rows[] = {
        { GUARD_STEP_EXEC, ENOENT, 127, "could not execute prog: No such" },
        { GUARD_STEP_EXEC, EACCES, 126, "Permission denied" },
        { GUARD_STEP_EXEC, ENOEXEC, 126, "without #!" },
        { GUARD_STEP_FORK, EAGAIN, 125, "ulimit -u" },
        { GUARD_STEP_SETUP, EPERM, 125, "could not be started" },
        { GUARD_STEP_BIND, EINVAL, 125, "could not be bound to its CPUs" },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct guard_msg msg = { .type = GUARD_FAILED,
                                 .worker = 0,
                                 .step = rows[i].step,
                                 .error = rows[i].error };
        struct outcome outcome = { .program = "prog" };
        struct worker_group group;
        char text[256];

        group_start(&group, 1);
        assert_true(worker_group_take(&group, &msg));
        assert_false(end(&group, 0, EXITED(1)));
        assert_int_equal(group.n_done, 1);
        outcome.group = &group;
        assert_int_equal(outcome_exit_code(&outcome), rows[i].code);
        outcome_describe(&outcome, text, sizeof(text));
        assert_non_null(strstr(text, rows[i].words));
        worker_group_destroy(&group);
    }
}

static void a_stop_signal_decides_unless_a_worker_does(void **state)
{
    static const struct {
        uint32_t first;
        uint32_t second;
        int code;
    } rows[] = {
        { 0, 0, 0 },
        { SIGNALLED(SIGTERM), 0, 128 + SIGTERM },
        { SIGNALLED(SIGKILL), SIGNALLED(SIGTERM), 128 + SIGTERM },
        { SIGNALLED(SIGTERM), EXITED(3), 3 },
        { EXITED(143), 0, 143 },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct outcome outcome = { .stop_signal = SIGTERM };
        struct worker_group group;

        group_start(&group, 2);
        worker_group_stopped(&group, GROUP_STOP_NS);
        (void)end_stopped(&group, 0, rows[i].first);
        (void)end_stopped(&group, 1, rows[i].second);
        outcome.group = &group;
        assert_int_equal(outcome_exit_code(&outcome), rows[i].code);
        worker_group_destroy(&group);
    }
}

static void flaunchs_own_failure_is_125(void **state)
{
    struct outcome outcome = { .own_failure = EXIT_FLAUNCH };
    struct worker_group group;

    (void)state;
    group_start(&group, 1);
    worker_group_stopped(&group, GROUP_STOP_NS);
    (void)end_stopped(&group, 0, SIGNALLED(SIGKILL));
    outcome.group = &group;
    assert_int_equal(outcome_exit_code(&outcome), 125);
    worker_group_destroy(&group);
}

static void strange_messages_change_nothing(void **state)
{
    struct guard_msg msg = { .type = GUARD_EXITED, .worker = 77 };
    struct worker_group group;

    (void)state;
    group_start(&group, 2);
    assert_false(worker_group_take(&group, &msg));
    assert_false(end(&group, 1, 0));
    assert_false(end(&group, 1, EXITED(1))); /* twice */
    assert_int_equal(group.n_done, 1);
    worker_group_destroy(&group);
}

static void ends_are_described(void **state)
{
    static const struct {
        int status;
        int code;
        const char *text;
    } rows[] = {
        { EXITED(0), 0, "exited with code 0" },
        { EXITED(255), 255, "exited with code 255" },
        { SIGNALLED(SIGKILL), 137, "was killed by SIGKILL" },
        { SIGNALLED(SIGSEGV) | 0x80, 139,
          "was killed by SIGSEGV (core dumped)" },
    };
    char text[96];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        exit_status_describe(rows[i].status, text, sizeof(text));
        assert_string_equal(text, rows[i].text);
        assert_int_equal(exit_status_code(rows[i].status), rows[i].code);
    }
    assert_string_equal(signal_name(SIGRTMIN + 3, text, sizeof(text)),
                        "SIGRTMIN+3");
    assert_string_equal(signal_name(99, text, sizeof(text)), "signal 99");
}

static void signals_have_names_and_numbers(void **state)
{
    (void)state;
    assert_int_equal(signal_number("SIGUSR1", 7), SIGUSR1);
    assert_int_equal(signal_number("usr2", 4), SIGUSR2);
    assert_int_equal(signal_number("USR1,USR2", 4), SIGUSR1);
    assert_int_equal(signal_number("10", 2), 10);
    assert_int_equal(signal_number("", 0), 0);
    assert_int_equal(signal_number("SIG", 3), 0);
    assert_int_equal(signal_number("NOSUCH", 6), 0);
    assert_int_equal(signal_number("0", 1), 0);
    assert_int_equal(signal_number("9999", 4), 0);
}

static void running_ranks_are_listed(void **state)
{
    struct worker_group group;
    char text[64];

    (void)state;
    group_start(&group, 100);
    worker_group_list_running(&group, text, sizeof(text));
    assert_true(strlen(text) < sizeof(text));
    assert_non_null(strstr(text, " ..."));
    worker_group_destroy(&group);
    group_start(&group, 3);
    (void)end(&group, 1, 0);
    worker_group_list_running(&group, text, sizeof(text));
    assert_string_equal(text, "0, 2");
    worker_group_destroy(&group);
}

/* Its SPAWNED and our STOP cross. */
static void who_started_when_the_stop_came_is_stopped_by_us(void **state)
{
    struct guard_msg late = { .type = GUARD_SPAWNED, .worker = 1, .pid = 101 };
    struct guard_msg first = { .type = GUARD_SPAWNED, .worker = 0, .pid = 100 };
    struct worker_group group;

    (void)state;
    assert_int_equal(worker_group_init(&group, 2), 0);
    assert_false(worker_group_take(&group, &first));
    worker_group_stopped(&group, GROUP_STOP_NS);
    assert_false(worker_group_take(&group, &late));
    assert_false(end_stopped(&group, 1, SIGTERM));
    assert_int_equal(group.first_failure, WORKER_NONE);
    assert_int_equal(group.n_stopped, 2);
    worker_group_destroy(&group);
}

/* Its end, told later, and our stop cross. */
static void who_had_ended_when_the_stop_came_ended_by_itself(void **state)
{
    struct worker_group group;

    (void)state;
    group_start(&group, 4);
    assert_true(end(&group, 2, EXITED(1)));
    worker_group_stopped(&group, GROUP_STOP_NS);
    assert_int_equal(group.n_stopped, 3);
    assert_false(end(&group, 1, EXITED(4)));
    assert_false(end(&group, 3, EXITED(0)));
    assert_false(end_stopped(&group, 0, EXITED(1)));
    assert_int_equal(group.n_stopped, 1);
    assert_false(group.workers[1].stopped_by_us);
    assert_true(group.workers[0].stopped_by_us);
    assert_int_equal(group.first_failure, 2);
    worker_group_destroy(&group);
}

static void the_agent_moves_by_its_table(void **state)
{
    (void)state;
    assert_int_equal(agent_next(AGENT_RUNNING, AGENT_EV_WORKER_FAILED),
                     AGENT_STOPPING);
    assert_int_equal(agent_next(AGENT_STOPPING, AGENT_EV_WORKER_FAILED),
                     AGENT_STOPPING);
    assert_int_equal(agent_next(AGENT_STOPPING, AGENT_EV_STOP), AGENT_STOPPING);
    assert_int_equal(agent_next(AGENT_STOPPING, AGENT_EV_SECOND_SIGNAL),
                     AGENT_KILLING);
    assert_int_equal(agent_next(AGENT_RUNNING, AGENT_EV_SECOND_SIGNAL),
                     AGENT_RUNNING);
    assert_int_equal(agent_next(AGENT_KILLING, AGENT_EV_GUARD_EMPTY),
                     AGENT_DRAINING);
    assert_int_equal(agent_next(AGENT_DRAINING, AGENT_EV_STOP), AGENT_DRAINING);
    assert_int_equal(agent_next(AGENT_DRAINING, AGENT_EV_DRAINED),
                     AGENT_WAITING);
    assert_int_equal(agent_next(AGENT_WAITING, AGENT_EV_START), AGENT_RUNNING);
    assert_int_equal(agent_next(AGENT_WAITING, AGENT_EV_END), AGENT_FLUSHING);
    assert_int_equal(agent_next(AGENT_WAITING, AGENT_EV_STOP), AGENT_WAITING);
    assert_int_equal(agent_next(AGENT_RUNNING, AGENT_EV_END), AGENT_RUNNING);
    assert_int_equal(agent_next(AGENT_STOPPING, AGENT_EV_HOST_LOST),
                     AGENT_KILLING);
    assert_int_equal(agent_next(AGENT_FLUSHING, AGENT_EV_FLUSHED), AGENT_OVER);
    assert_int_equal(agent_next(AGENT_OVER, AGENT_EV_STOP), AGENT_OVER);
    assert_string_equal(agent_state_name(AGENT_OVER), "over");
}

static void a_workers_place_follows_from_its_nodes(void **state)
{
    const struct node_place node = { .group_rank = 2,
                                     .n_nodes = 3,
                                     .n_workers = 8,
                                     .base_rank = 5,
                                     .world_size = 13,
                                     .role_base_rank = 1,
                                     .role_world_size = 9 };
    const struct node_place alone = ranks_one_node(4);
    struct place place = ranks_place(&node, 5);

    (void)state;
    assert_int_equal(place.rank, 10);
    assert_int_equal(place.world_size, 13);
    assert_int_equal(place.local_rank, 5);
    assert_int_equal(place.local_world_size, 8);
    assert_int_equal(place.group_rank, 2);
    assert_int_equal(place.group_world_size, 3);
    assert_int_equal(place.role_rank, 6);
    assert_int_equal(place.role_world_size, 9);
    place = ranks_place(&alone, 3);
    assert_int_equal(place.rank, 3);
    assert_int_equal(place.world_size, 4);
    assert_int_equal(place.role_world_size, 4);
}

static void numbers_of_workers_have_bounds(void **state)
{
    static const struct {
        const char *text;
        unsigned n_gpus;
        uint32_t n; /* 0: refused */
    } cases[] = {
        { "1", 0, 1 },    { "65536", 0, 65536 }, { "65537", 0, 0 },
        { "", 0, 0 },     { "GPU", 1, 0 },       { "auto", 2, 2 },
        { "auto", 0, 6 }, { "cpu", 2, 6 },       { "gpu", 2, 2 },
        { "gpu", 0, 0 },  { " 2 ", 0, 2 },       { "+2", 0, 2 },
        { "1_0", 0, 10 }, { "1__0", 0, 0 },      { "_1", 0, 0 },
        { "2.0", 0, 0 },  { "0x2", 0, 0 },       { "0", 0, 0 },
        { "-1", 0, 0 },
    };
    struct options options = { 0 };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err;
        uint32_t n = 0;
        int rc;

        options.values[OPT_NPROC_PER_NODE].text = cases[i].text;
        rc = nproc_resolve(&options, 6, cases[i].n_gpus, &n, &err);
        assert_int_equal(rc, cases[i].n == 0 ? -EINVAL : 0);
        assert_int_equal(n, cases[i].n);
    }
}

static bool env_has(const struct env_list *list, const char *string)
{
    size_t i;

    for (i = 0; i < list->n; i++) {
        if (strcmp(list->strings[i], string) == 0) {
            return true;
        }
    }
    return false;
}

static void outer_records_are_scrubbed_and_ours_set_once(void **state)
{
    static char a[] = "PMI_RANK=3";
    static char b[] = "RANK=9";
    static char c[] = "HOME=/h";
    static char d[] = "SLURM_STEP_NODELIST=x";
    static char e[] = "SLURM_JOB_ID=5";
    static char f[] = "PYTHONUNBUFFERED=";
    static char g[] = "no_equals_sign";
    char *outer[] = { a, b, c, d, e, f, g, NULL };
    struct job_env job = { .master_addr = "127.0.0.1",
                           .master_port = 1234,
                           .role = "default",
                           .run_id = "none",
                           .signals = "SIGTERM" };
    struct env_list list;
    size_t i;
    size_t n_rank = 0;

    (void)state;
    assert_int_equal(worker_env_shared(outer, &job, &list), 0);
    assert_true(env_has(&list, "HOME=/h"));
    assert_true(env_has(&list, "SLURM_JOB_ID=5"));
    assert_true(env_has(&list, "MASTER_PORT=1234"));
    assert_true(env_has(&list, "FLAUNCH_STORE=127.0.0.1:1234"));
    assert_true(env_has(&list, "PYTHONUNBUFFERED="));
    assert_false(env_has(&list, "PYTHONUNBUFFERED=1"));
    assert_false(env_has(&list, a));
    assert_false(env_has(&list, d));
    for (i = 0; i < list.n; i++) {
        n_rank += strncmp(list.strings[i], "RANK=", 5) == 0;
    }
    assert_int_equal(n_rank, 0); /* each worker's own list has it */
    assert_null(list.strings[list.n]);
    env_list_destroy(&list);
    job.keep_env = true;
    assert_int_equal(worker_env_shared(outer, &job, &list), 0);
    assert_true(env_has(&list, a));
    assert_false(env_has(&list, b));
    env_list_destroy(&list);
}

static void a_list_of_signals_is_searched(void **state)
{
    static const int list[] = { SIGTERM, SIGUSR1, 0 };
    static const int empty[] = { 0 };

    (void)state;
    assert_true(signal_list_has(list, SIGUSR1));
    assert_false(signal_list_has(list, SIGINT));
    assert_false(signal_list_has(empty, SIGTERM));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_failure_counts),
        cmocka_unit_test(all_well_is_0_and_says_nothing),
        cmocka_unit_test(a_failed_exec_has_its_codes),
        cmocka_unit_test(a_stop_signal_decides_unless_a_worker_does),
        cmocka_unit_test(flaunchs_own_failure_is_125),
        cmocka_unit_test(strange_messages_change_nothing),
        cmocka_unit_test(ends_are_described),
        cmocka_unit_test(signals_have_names_and_numbers),
        cmocka_unit_test(running_ranks_are_listed),
        cmocka_unit_test(who_started_when_the_stop_came_is_stopped_by_us),
        cmocka_unit_test(who_had_ended_when_the_stop_came_ended_by_itself),
        cmocka_unit_test(the_agent_moves_by_its_table),
        cmocka_unit_test(a_workers_place_follows_from_its_nodes),
        cmocka_unit_test(numbers_of_workers_have_bounds),
        cmocka_unit_test(outer_records_are_scrubbed_and_ours_set_once),
        cmocka_unit_test(a_list_of_signals_is_searched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
