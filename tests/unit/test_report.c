/*
 * The report on the screen, from made-up ends of a job.
 */
#include "launcher/report.h"
#include "tests/unit/group.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exit code 3, as wait(2) has it. */
#define CODE_3 0x300

/* In the order of their numbers, before the stop. */
static void end(struct worker_group *group, uint32_t worker, uint32_t status)
{
    (void)group_end(group, worker, status,
                    2 * GROUP_SECOND_NS + worker * 1000000ULL);
}

static void end_stopped(struct worker_group *group, uint32_t worker)
{
    (void)group_end(group, worker, SIGTERM, GROUP_STOP_NS + worker);
}

static struct report report_of(const struct outcome *outcome)
{
    return (struct report){ .outcome = outcome,
                            .run_id = "none",
                            .host = "node1",
                            .oom_kills = -1,
                            .losses = "" };
}

static const char *print(const struct report *report)
{
    static struct buf out;

    out.len = 0;
    assert_int_equal(report_print(report, &out), 0);
    assert_int_equal(buf_append_u8(&out, '\0'), 0);
    return (const char *)out.data;
}

static void a_failure_is_told_with_its_place(void **state)
{
    struct worker_group group;
    struct outcome outcome = { .group = &group, .program = "/bin/p" };
    struct report report = report_of(&outcome);

    (void)state;
    group_start(&group, 3);
    end(&group, 2, 0);
    end(&group, 1, CODE_3);
    worker_group_stopped(&group, GROUP_STOP_NS);
    end_stopped(&group, 0);
    report.attempt = 1;
    report.max_restarts = 2;
    report.error = "ValueError: x\nsecond";
    report.log = "/logs/a\nb";
    assert_string_equal(
        print(&report),
        "  job none on node1, attempt 2 of 3, running /bin/p, peak memory 2 "
        "MiB\n"
        "  it reported: ValueError: x\n"
        "    second\n"
        "  its log: /logs/a\\x0ab\n"
        "  stopped by flaunch: rank 0\n"
        "  already done: rank 2\n");
    worker_group_destroy(&group);
}

static void out_of_memory_is_named_with_evidence_only(void **state)
{
    struct worker_group group;
    struct outcome outcome = { .group = &group, .program = "/bin/p" };
    struct report report = report_of(&outcome);

    (void)state;
    group_start(&group, 1);
    end(&group, 0, SIGKILL);
    assert_non_null(strstr(print(&report), "SIGKILL was not sent by flaunch; "
                                           "often it is"));
    report.oom_kills = 2;
    assert_non_null(strstr(print(&report), "was hit: the kernel killed 2 "
                                           "processes for it"));
    worker_group_destroy(&group);
    group_start(&group, 1);
    end(&group, 0, SIGSEGV);
    report.oom_kills = 0;
    assert_non_null(strstr(print(&report), "SIGSEGV was not sent by "
                                           "flaunch\n"));
    worker_group_destroy(&group);
}

/* Whatever happened, a screen holds it: 40 lines with the first. */
static void a_report_fits_a_screen(void **state)
{
    struct worker_group group;
    struct outcome outcome = { .group = &group, .program = "/bin/p" };
    struct report report = report_of(&outcome);
    struct last_lines last = { 0 };
    const char *at;
    int n = 0;
    uint32_t i;

    (void)state;
    group_start(&group, 1000);
    for (i = 0; i < 500; i++) {
        end(&group, i, i % 2 == 0 ? CODE_3 : SIGKILL);
        last_lines_add(&last, (const uint8_t *)"line\n", 5);
    }
    for (i = 500; i < 700; i += 2) {
        end(&group, i, 0);
    }
    worker_group_stopped(&group, GROUP_STOP_NS);
    for (i = 501; i < 1000; i++) {
        end_stopped(&group, i);
    }
    report.last = &last;
    report.error = "1\n2\n3\n4\n5\n6\n7\n";
    report.log = "/l";
    report.full_disk = "/l";
    report.oom_kills = 5;
    report.losses = "  lost: a\n  lost: b\n  lost: c\n";
    for (at = print(&report); *at != '\0'; at++) {
        n += *at == '\n';
    }
    assert_in_range(n, 30, 39);
    assert_non_null(strstr(print(&report), "also failed: 496 more"));
    last_lines_destroy(&last);
    worker_group_destroy(&group);
}

static void what_never_ran_needs_no_report(void **state)
{
    struct guard_msg msg = { .type = GUARD_FAILED,
                             .step = GUARD_STEP_EXEC,
                             .error = ENOEXEC };
    struct worker_group group;
    struct outcome outcome = { .group = &group, .program = "/bin/p" };
    struct report report = report_of(&outcome);

    (void)state;
    group_start(&group, 2);
    (void)worker_group_take(&group, &msg);
    assert_string_equal(print(&report), "");
    worker_group_destroy(&group);
    group_start(&group, 1);
    end(&group, 0, 0);
    report.losses = "  lost: x\n";
    assert_string_equal(print(&report), "  lost: x\n");
    worker_group_destroy(&group);
}

static bool is_even(const struct worker *worker)
{
    return worker->pid % 2 == 0;
}

static bool is_any(const struct worker *worker)
{
    return worker->pid != 0;
}

static void ranks_are_listed_as_ranges(void **state)
{
    struct worker_group group;
    char text[64];

    (void)state;
    group_start(&group, 5);
    assert_int_equal(report_ranks(&group, is_any, text, sizeof(text)), 5);
    assert_string_equal(text, "0-4");
    assert_int_equal(report_ranks(&group, is_even, text, sizeof(text)), 3);
    assert_string_equal(text, "0, 2, 4");
    worker_group_destroy(&group);
    group_start(&group, 1000);
    assert_int_equal(report_ranks(&group, is_even, text, sizeof(text)), 500);
    assert_true(strlen(text) < sizeof(text));
    worker_group_destroy(&group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_is_told_with_its_place),
        cmocka_unit_test(out_of_memory_is_named_with_evidence_only),
        cmocka_unit_test(a_report_fits_a_screen),
        cmocka_unit_test(what_never_ran_needs_no_report),
        cmocka_unit_test(ranks_are_listed_as_ranges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
