/*
 * Restarts: how many, and how long the waits between them are.
 */
#include "launcher/coordinator.h"
#include "tests/unit/unit.h"

static const struct attempt_end short_failure = { .failed = true,
                                                  .lasted_ms = 5 };
static const struct attempt_end long_failure = { .failed = true,
                                                 .lasted_ms = 10000 };

static void restarts_are_exactly_n(void **state)
{
    struct coordinator coordinator;
    uint64_t delay_ms;
    uint32_t n;

    (void)state;
    for (n = 0; n < 5; n++) {
        uint32_t restarts = 0;

        coordinator_init(&coordinator, n, 1000);
        while (coordinator_attempt_ended(&coordinator, &short_failure,
                                         &delay_ms)) {
            restarts++;
            assert_int_equal(coordinator.restarts, restarts);
        }
        assert_int_equal(restarts, n);
    }
}

static void success_and_what_is_for_good_end_the_job(void **state)
{
    const struct attempt_end success = { .lasted_ms = 5 };
    const struct attempt_end for_good = { .failed = true, .for_good = true };
    struct coordinator coordinator;
    uint64_t delay_ms;

    (void)state;
    coordinator_init(&coordinator, 3, 1000);
    assert_false(coordinator_attempt_ended(&coordinator, &success, &delay_ms));
    assert_false(coordinator_attempt_ended(&coordinator, &for_good, &delay_ms));
    assert_int_equal(coordinator.restarts, 0);
}

static void waits_double_to_half_a_minute(void **state)
{
    static const uint64_t waits_s[] = { 1, 2, 4, 8, 16, 30, 30 };
    struct coordinator coordinator;
    uint64_t delay_ms;
    size_t i;

    (void)state;
    coordinator_init(&coordinator, 100, 1000);
    for (i = 0; i < sizeof(waits_s) / sizeof(waits_s[0]); i++) {
        assert_true(
            coordinator_attempt_ended(&coordinator, &short_failure, &delay_ms));
        assert_true(delay_ms == waits_s[i] * 1000);
    }
}

static void a_long_attempt_waits_for_nothing_and_begins_anew(void **state)
{
    struct coordinator coordinator;
    uint64_t delay_ms;

    (void)state;
    coordinator_init(&coordinator, 100, 1000);
    (void)coordinator_attempt_ended(&coordinator, &short_failure, &delay_ms);
    (void)coordinator_attempt_ended(&coordinator, &short_failure, &delay_ms);
    assert_true(
        coordinator_attempt_ended(&coordinator, &long_failure, &delay_ms));
    assert_true(delay_ms == 0);
    assert_true(
        coordinator_attempt_ended(&coordinator, &short_failure, &delay_ms));
    assert_true(delay_ms == 1000);
}

static void no_backoff_means_no_wait(void **state)
{
    struct coordinator coordinator;
    uint64_t delay_ms;
    int i;

    (void)state;
    coordinator_init(&coordinator, 100, 0);
    for (i = 0; i < 10; i++) {
        assert_true(
            coordinator_attempt_ended(&coordinator, &short_failure, &delay_ms));
        assert_true(delay_ms == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restarts_are_exactly_n),
        cmocka_unit_test(success_and_what_is_for_good_end_the_job),
        cmocka_unit_test(waits_double_to_half_a_minute),
        cmocka_unit_test(a_long_attempt_waits_for_nothing_and_begins_anew),
        cmocka_unit_test(no_backoff_means_no_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
