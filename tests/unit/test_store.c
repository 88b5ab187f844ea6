/*
 * Keys, values and waiters without a socket.
 */
#include "common/siphash.h"
#include "common/store.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct bytes text(const char *s)
{
    return (struct bytes){ .data = (const uint8_t *)s, .len = strlen(s) };
}

static int setup(void **state)
{
    const struct store_conf conf = STORE_CONF_DEFAULT;

    *state = store_create(&conf);
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

static void what_a_waiter_misses_is_told(void **state)
{
    struct store *store = *state;
    int n_done = 0;
    struct store_waiter waiter = { .done = count_done, .arg = &n_done };
    struct bytes key;

    assert_false(store_waiter_key(&waiter, 0, &key));
    assert_int_equal(store_wait(store, &waiter, text("a")), 0);
    assert_int_equal(store_wait(store, &waiter, text("b")), 0);
    assert_true(store_waiter_key(&waiter, 0, &key));
    assert_int_equal(key.data[0], 'b');
    assert_true(store_waiter_key(&waiter, 1, &key));
    assert_int_equal(key.data[0], 'a');
    assert_false(store_waiter_key(&waiter, 2, &key));
    store_wait_cancel(store, &waiter);
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
    struct store_conf conf = STORE_CONF_DEFAULT;
    struct store *store;
    static char big[1900];
    struct bytes value = { .data = (const uint8_t *)big, .len = sizeof(big) };

    (void)state;
    conf.max_memory = 2000;
    store = store_create(&conf);
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
    const struct store_conf conf = STORE_CONF_DEFAULT;
    struct store *store = store_create(&conf);
    int n_done = 0;
    struct store_waiter waiter = { .done = count_done, .arg = &n_done };

    (void)state;
    assert_int_equal(store_wait(store, &waiter, text("k")), 0);
    assert_int_equal(store_wait(store, &waiter, text("l")), 0);
    store_destroy(store);
    store_destroy(NULL);
    assert_int_equal(n_done, 0);
}

static void everything_that_is_kept_is_counted(void **state)
{
    struct store_conf conf = STORE_CONF_DEFAULT;
    int n_done = 0;
    struct store_waiter waiter = { .done = count_done, .arg = &n_done };
    struct store_watcher watcher = { .arg = NULL };
    struct store *store;
    uint64_t empty;
    int n = 0;

    (void)state;
    conf.max_memory = 20000;
    store = store_create(&conf);
    assert_non_null(store);
    empty = store_memory(store);
    while (store_queue_push(store, text("q"), text("element")) == 0) {
        n++;
    }
    assert_in_range(n, 100, 400);
    assert_int_equal(store_queue_push(store, text("other"), text("")), -ENOSPC);
    while (n-- > 0) {
        store_queue_drop(store, text("q"));
    }
    assert_int_equal(store_memory(store), empty);
    for (n = 0; store_wait(store, &waiter, text("w")) == 0; n++) {
        assert_true(n < 1000);
    }
    assert_int_equal(store_watch(store, &watcher, text("x")), -ENOSPC);
    assert_true(store_memory(store) <= conf.max_memory);
    store_wait_cancel(store, &waiter);
    assert_int_equal(store_memory(store), empty);
    assert_true(store_charge(store, 19000));
    assert_false(store_charge(store, 2000));
    assert_false(store_charge(store, SIZE_MAX));
    assert_int_equal(store_set(store, text("k"), text("v")), 0);
    store_release(store, 19000);
    store_destroy(store);
}

static void keys_have_a_limit(void **state)
{
    struct store_conf conf = STORE_CONF_DEFAULT;
    struct store *store;
    int64_t sum;

    (void)state;
    conf.max_keys = 2;
    store = store_create(&conf);
    assert_non_null(store);
    assert_int_equal(store_set(store, text("a"), text("")), 0);
    assert_int_equal(store_add(store, text("b"), 1, &sum), 0);
    assert_int_equal(store_set(store, text("c"), text("")), -EDQUOT);
    assert_int_equal(store_append(store, text("c"), text("")), -EDQUOT);
    assert_int_equal(store_add(store, text("c"), 1, &sum), -EDQUOT);
    assert_int_equal(store_set(store, text("a"), text("again")), 0);
    assert_true(store_delete(store, text("a")));
    assert_int_equal(store_set(store, text("c"), text("")), 0);
    assert_int_equal(store_n_keys(store), 2);
    store_destroy(store);
}

/* Every key once, whatever the table is doing meanwhile. */
static void a_walk_meets_every_key(void **state)
{
    struct store *store = *state;
    char seen[3000];
    char key[32];
    int n;
    int i;

    for (n = 1; n <= 3000; n++) {
        const struct store_entry *at = NULL;
        struct bytes found;
        int n_seen = 0;

        (void)snprintf(key, sizeof(key), "%d", n - 1);
        assert_int_equal(store_set(store, text(key), text("")), 0);
        if (n > 200 && n % 61 != 0) {
            continue;
        }
        memset(seen, 0, sizeof(seen));
        while ((at = store_next_key(store, at, &found)) != NULL) {
            (void)snprintf(key, sizeof(key), "%.*s", (int)found.len,
                           (const char *)found.data);
            i = atoi(key);
            assert_in_range(i, 0, n - 1);
            assert_false(seen[i]);
            seen[i] = 1;
            n_seen++;
        }
        assert_int_equal(n_seen, n);
    }
}

static void queues_are_first_in_first_out(void **state)
{
    struct store *store = *state;
    struct bytes value;

    assert_int_equal(store_queue_len(store, text("q")), 0);
    assert_int_equal(store_queue_front(store, text("q"), &value), 0);
    assert_int_equal(store_queue_push(store, text("q"), text("one")), 0);
    assert_int_equal(store_queue_push(store, text("q"), text("")), 0);
    assert_int_equal(store_set(store, text("q"), text("plain")), 0);
    assert_int_equal(store_queue_front(store, text("q"), &value), 2);
    assert_memory_equal(value.data, "one", 3);
    store_queue_drop(store, text("q"));
    assert_int_equal(store_queue_front(store, text("q"), &value), 1);
    assert_int_equal(value.len, 0);
    assert_true(store_delete(store, text("q"))); /* the queue stays */
    assert_true(store_is_ready(store, text("q")));
    store_queue_drop(store, text("q"));
    assert_false(store_is_ready(store, text("q")));
    assert_int_equal(store_n_keys(store), 0);
}

static void a_push_releases_who_waits_longest(void **state)
{
    struct store *store = *state;
    int n_first = 0;
    int n_second = 0;
    struct store_waiter first = { .done = count_done, .arg = &n_first };
    struct store_waiter second = { .done = count_done, .arg = &n_second };

    assert_int_equal(store_wait(store, &first, text("q")), 0);
    assert_int_equal(store_wait(store, &second, text("q")), 0);
    assert_int_equal(store_queue_push(store, text("q"), text("1")), 0);
    assert_int_equal(n_first, 1);
    assert_int_equal(n_second, 0);
    assert_int_equal(store_queue_push(store, text("q"), text("2")), 0);
    assert_int_equal(n_second, 1);
}

static void a_barrier_releases_all_when_the_last_comes(void **state)
{
    struct store *store = *state;
    int n_done = 0;
    struct store_waiter a = { .done = count_done, .arg = &n_done };
    struct store_waiter b = { .done = count_done, .arg = &n_done };
    struct store_waiter plain = { .done = count_done, .arg = &n_done };
    bool complete;

    assert_int_equal(store_wait(store, &plain, text("b")), 0);
    assert_int_equal(store_wait(store, &a, text("other")), 0);
    assert_int_equal(store_barrier(store, &a, text("b"), 3, &complete), 0);
    assert_false(complete);
    assert_int_equal(store_barrier(store, &b, text("b"), 3, &complete), 0);
    assert_false(complete);
    assert_int_equal(n_done, 0);
    assert_int_equal(store_set(store, text("other"), text("")), 0);
    assert_int_equal(n_done, 0); /* replaced by the barrier */
    assert_int_equal(store_barrier(store, &b, text("b"), 3, &complete), 0);
    assert_true(complete);
    assert_int_equal(n_done, 3);
    assert_value(store, "b", "3");
    assert_int_equal(store_set(store, text("x"), text("words")), 0);
    assert_int_equal(store_barrier(store, &b, text("x"), 1, &complete),
                     -EINVAL);
    assert_int_equal(store_barrier(store, &b, text("0"), 0, &complete), 0);
    assert_true(complete);
}

static void note_change(struct store_watcher *watcher, enum store_change change,
                        struct bytes key, struct bytes before,
                        struct bytes after)
{
    (void)snprintf(watcher->arg, 64, "%d %.*s %.*s>%.*s", change, (int)key.len,
                   (const char *)key.data, (int)before.len,
                   (const char *)before.data, (int)after.len,
                   (const char *)after.data);
}

static void a_watcher_hears_each_change(void **state)
{
    struct store *store = *state;
    char heard[64] = "";
    struct store_watcher watcher = { .changed = note_change, .arg = heard };
    int64_t sum;

    assert_int_equal(store_watch(store, &watcher, text("k")), 0);
    assert_int_equal(store_set(store, text("k"), text("1")), 0);
    assert_string_equal(heard, "1 k >1");
    assert_int_equal(store_add(store, text("k"), 41, &sum), 0);
    assert_string_equal(heard, "0 k 1>42");
    assert_int_equal(store_append(store, text("k"), text("0")), 0);
    assert_string_equal(heard, "0 k 42>420");
    assert_true(store_delete(store, text("k")));
    assert_string_equal(heard, "2 k 420>");
    store_watch_cancel(store, &watcher);
    assert_int_equal(store_set(store, text("k"), text("unheard")), 0);
    assert_string_equal(heard, "2 k 420>");
    assert_int_equal(store_watch(store, &watcher, text("left")), 0);
}

/* Python's hash of bytes with PYTHONHASHSEED=0 is the same function. */
static void the_hash_is_siphash_1_3(void **state)
{
    static const struct {
        const char *text;
        uint64_t hash;
    } rows[] = {
        { "a", 0x407448d2b89b1813 },
        { "abcdefg", 0x6db12aae9070f506 },
        { "abcdefgh", 0x3f7b849c0b8e35ea },
        { "/default_pg/0//cpu//0/1", 0x7c45301da649a352 },
    };
    const uint64_t key[2] = { 0, 0 };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bytes bytes = text(rows[i].text);

        assert_true(siphash13(key, bytes.data, bytes.len) == rows[i].hash);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_are_set_replaced_and_removed),
        TEST(keys_are_bytes),
        TEST(many_keys_keep_their_values),
        TEST(counters_follow_strtoll),
        TEST(compare_set_answers_as_a_tcpstore),
        TEST(appending_creates_and_extends),
        TEST(a_waiter_is_released_by_the_last_key),
        TEST(what_a_waiter_misses_is_told),
        TEST(a_cancelled_waiter_hears_nothing),
        TEST(a_walk_meets_every_key),
        TEST(queues_are_first_in_first_out),
        TEST(a_push_releases_who_waits_longest),
        TEST(a_barrier_releases_all_when_the_last_comes),
        TEST(a_watcher_hears_each_change),
        cmocka_unit_test(memory_has_a_limit),
        cmocka_unit_test(everything_that_is_kept_is_counted),
        cmocka_unit_test(keys_have_a_limit),
        cmocka_unit_test(a_store_that_ends_forgets_its_waiters),
        cmocka_unit_test(the_hash_is_siphash_1_3),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
