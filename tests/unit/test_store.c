/*
 * Keys, values and waiters without a socket.
 */
#include "common/store.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct bytes text(const char *s)
{
    return (struct bytes){ .data = (const uint8_t *)s, .len = strlen(s) };
}

static int setup(void **state)
{
    *state = store_create(0);
    return *state != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    store_destroy(*state);
    return 0;
}

static void assert_value(const struct store *store, const char *key,
                         const char *wanted)
{
    struct bytes value;

    assert_true(store_get(store, text(key), &value));
    assert_int_equal(value.len, strlen(wanted));
    assert_memory_equal(value.data, wanted, value.len);
}

static void values_are_set_replaced_and_removed(void **state)
{
    struct store *store = *state;
    struct bytes value;

    assert_false(store_get(store, text("k"), &value));
    assert_int_equal(store_set(store, text("k"), text("one")), 0);
    assert_int_equal(store_set(store, text("k"), text("a longer value")), 0);
    assert_value(store, "k", "a longer value");
    assert_int_equal(store_set(store, text("k"), text("")), 0);
    assert_value(store, "k", "");
    assert_int_equal(store_n_keys(store), 1);
    assert_true(store_delete(store, text("k")));
    assert_false(store_delete(store, text("k")));
    assert_int_equal(store_n_keys(store), 0);
}

static void keys_are_bytes(void **state)
{
    struct store *store = *state;
    struct bytes a = { .data = (const uint8_t *)"a\0b", .len = 3 };
    struct bytes b = { .data = (const uint8_t *)"a\0c", .len = 3 };

    assert_int_equal(store_set(store, a, text("1")), 0);
    assert_int_equal(store_set(store, b, text("2")), 0);
    assert_int_equal(store_set(store, text(""), text("3")), 0);
    assert_int_equal(store_n_keys(store), 3);
    assert_value(store, "", "3");
}

static void many_keys_keep_their_values(void **state)
{
    struct store *store = *state;
    char key[32];
    int i;

    for (i = 0; i < 10000; i++) {
        (void)snprintf(key, sizeof(key), "key%d", i);
        assert_int_equal(store_set(store, text(key), text(key)), 0);
    }
    for (i = 0; i < 10000; i += 2) {
        (void)snprintf(key, sizeof(key), "key%d", i);
        assert_true(store_delete(store, text(key)));
    }
    assert_int_equal(store_n_keys(store), 5000);
    for (i = 1; i < 10000; i += 2) {
        (void)snprintf(key, sizeof(key), "key%d", i);
        assert_value(store, key, key);
    }
}

static void counters_follow_strtoll(void **state)
{
    static const struct {
        const char *old;
        int64_t delta;
        int rc;
        int64_t sum;
    } rows[] = {
        { "5", 2, 0, 7 },
        { "-5", 2, 0, -3 },
        { " +7", 1, 0, 8 },
        { "\n5", 1, 0, 6 },
        { "12abc", 1, 0, 13 },
        { "0x10", 1, 0, 1 },
        { "1.9", 1, 0, 2 },
        { "-0", 1, 0, 1 },
        { "0007", 1, 0, 8 },
        { "", 1, -EINVAL, 0 },
        { "abc", 1, -EINVAL, 0 },
        { "-", 1, -EINVAL, 0 },
        { "9223372036854775807", 1, 0, INT64_MIN },
        { "-9223372036854775808", -1, 0, INT64_MAX },
        { "9223372036854775808", 1, -ERANGE, 0 },
        { "-9223372036854775809", 1, -ERANGE, 0 },
    };
    struct store *store = *state;
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t sum = -1;

        assert_int_equal(store_set(store, text("c"), text(rows[i].old)), 0);
        assert_int_equal(store_add(store, text("c"), rows[i].delta, &sum),
                         rows[i].rc);
        if (rows[i].rc == 0) {
            assert_true(sum == rows[i].sum);
        } else {
            assert_value(store, "c", rows[i].old);
        }
    }
}

static void compare_set_answers_as_a_tcpstore(void **state)
{
    struct store *store = *state;
    struct bytes result;

    /* missing, expected empty: stored */
    assert_int_equal(
        store_compare_set(store, text("n"), text(""), text("a"), &result), 0);
    assert_value(store, "n", "a");
    /* present and equal: stored */
    assert_int_equal(
        store_compare_set(store, text("n"), text("a"), text("b"), &result), 0);
    assert_value(store, "n", "b");
    /* present and different: the old value */
    assert_int_equal(
        store_compare_set(store, text("n"), text("z"), text("c"), &result), 0);
    assert_memory_equal(result.data, "b", 1);
    /* missing, expected not empty: the expected one, and no key */
    assert_int_equal(
        store_compare_set(store, text("m"), text("exp"), text("c"), &result),
        0);
    assert_memory_equal(result.data, "exp", 3);
    assert_int_equal(store_n_keys(store), 1);
}

static void appending_creates_and_extends(void **state)
{
    struct store *store = *state;

    assert_int_equal(store_append(store, text("l"), text("xy")), 0);
    assert_int_equal(store_append(store, text("l"), text("z")), 0);
    assert_value(store, "l", "xyz");
    assert_int_equal(store_append(store, text("e"), text("")), 0);
    assert_value(store, "e", "");
    assert_true(store_delete(store, text("l")));
    assert_int_equal(store_append(store, text("l"), text("new")), 0);
    assert_value(store, "l", "new");
}

static void count_done(struct store_waiter *waiter)
{
    ++*(int *)waiter->arg;
}

static void a_waiter_is_released_by_the_last_key(void **state)
{
    struct store *store = *state;
    int n_done = 0;
    struct store_waiter waiter = { .done = count_done, .arg = &n_done };

    assert_int_equal(store_set(store, text("there"), text("")), 0);
    assert_int_equal(store_wait(store, &waiter, text("a")), 0);
    assert_int_equal(store_wait(store, &waiter, text("there")), 0);
    assert_int_equal(store_wait(store, &waiter, text("b")), 0);
    assert_int_equal(store_wait(store, &waiter, text("b")), 0); /* twice */
    assert_int_equal(waiter.n_missing, 3);
    assert_int_equal(store_set(store, text("a"), text("1")), 0);
    assert_true(store_delete(store, text("a"))); /* stays counted */
    assert_int_equal(n_done, 0);
    assert_int_equal(store_append(store, text("b"), text("1")), 0);
    assert_int_equal(n_done, 1);
    assert_int_equal(store_n_keys(store), 2); /* waited-for keys are none */
}

static void a_cancelled_waiter_hears_nothing(void **state)
{
    struct store *store = *state;
    int n_done = 0;
    struct store_waiter a = { .done = count_done, .arg = &n_done };
    struct store_waiter b = { .done = count_done, .arg = &n_done };
    int64_t sum;

    assert_int_equal(store_wait(store, &a, text("k")), 0);
    assert_int_equal(store_wait(store, &b, text("k")), 0);
    assert_int_equal(store_wait(store, &b, text("l")), 0);
    store_wait_cancel(store, &b);
    store_wait_cancel(store, &b);
    assert_int_equal(store_add(store, text("k"), 1, &sum), 0);
    assert_int_equal(store_set(store, text("l"), text("")), 0);
    assert_int_equal(n_done, 1);
}

static void memory_has_a_limit(void **state)
{
    struct store *store = store_create(2000);
    static char big[1900];
    struct bytes value = { .data = (const uint8_t *)big, .len = sizeof(big) };

    (void)state;
    assert_non_null(store);
    assert_int_equal(store_set(store, text("k"), text("v")), 0);
    assert_int_equal(store_set(store, text("k"), value), -ENOSPC);
    assert_int_equal(store_set(store, text("new"), value), -ENOSPC);
    assert_value(store, "k", "v"); /* nothing changed */
    assert_int_equal(store_n_keys(store), 1);
    assert_int_equal(store_set(store, text("l"), text("w")), 0);
    store_destroy(store);
}

static void a_store_that_ends_forgets_its_waiters(void **state)
{
    struct store *store = store_create(0);
    int n_done = 0;
    struct store_waiter waiter = { .done = count_done, .arg = &n_done };

    (void)state;
    assert_int_equal(store_wait(store, &waiter, text("k")), 0);
    assert_int_equal(store_wait(store, &waiter, text("l")), 0);
    store_destroy(store);
    store_destroy(NULL);
    assert_int_equal(n_done, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_are_set_replaced_and_removed,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(keys_are_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(many_keys_keep_their_values, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(counters_follow_strtoll, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(compare_set_answers_as_a_tcpstore,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(appending_creates_and_extends, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_waiter_is_released_by_the_last_key,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_cancelled_waiter_hears_nothing, setup,
                                        teardown),
        cmocka_unit_test(memory_has_a_limit),
        cmocka_unit_test(a_store_that_ends_forgets_its_waiters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
