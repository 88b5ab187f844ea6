/*
 * Restarts: how many, and how long the waits between them are.
 */
#include "launcher/restarts.h"
#include "tests/unit/unit.h"

#define SHORT_MS 5

static void restarts_are_exactly_n(void **state)
{
    struct restarts restarts;
    uint64_t wait_ms;
    uint32_t n;

    (void)state;
    for (n = 0; n < 5; n++) {
        uint32_t taken = 0;

        restarts_init(&restarts, n, 1000);
        while (restarts_take(&restarts, SHORT_MS, &wait_ms)) {
            taken++;
            assert_int_equal(restarts.used, taken);
        }
        assert_int_equal(taken, n);
    }
}

static void waits_double_to_half_a_minute(void **state)
{
    static const uint64_t waits_s[] = { 1, 2, 4, 8, 16, 30, 30 };
    struct restarts restarts;
    uint64_t wait_ms;
    size_t i;

    (void)state;
    restarts_init(&restarts, 100, 1000);
    for (i = 0; i < sizeof(waits_s) / sizeof(waits_s[0]); i++) {
        assert_true(restarts_take(&restarts, SHORT_MS, &wait_ms));
        assert_true(wait_ms == waits_s[i] * 1000);
    }
}

static void a_long_attempt_waits_for_nothing_and_begins_anew(void **state)
{
    struct restarts restarts;
    uint64_t wait_ms;

    (void)state;
    restarts_init(&restarts, 100, 1000);
    (void)restarts_take(&restarts, SHORT_MS, &wait_ms);
    (void)restarts_take(&restarts, SHORT_MS, &wait_ms);
    assert_true(restarts_take(&restarts, RESTARTS_SHORT_MS, &wait_ms));
    assert_true(wait_ms == 0);
    assert_true(restarts_take(&restarts, SHORT_MS, &wait_ms));
    assert_true(wait_ms == 1000);
}

static void no_first_wait_means_no_wait(void **state)
{
    struct restarts restarts;
    uint64_t wait_ms;
    int i;

    (void)state;
    restarts_init(&restarts, 100, 0);
    for (i = 0; i < 10; i++) {
        assert_true(restarts_take(&restarts, SHORT_MS, &wait_ms));
        assert_true(wait_ms == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restarts_are_exactly_n),
        cmocka_unit_test(waits_double_to_half_a_minute),
        cmocka_unit_test(a_long_attempt_waits_for_nothing_and_begins_anew),
        cmocka_unit_test(no_first_wait_means_no_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
