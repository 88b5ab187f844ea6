/*
 * Limits and long requests; what the captured conversations do not hold.
 */
#include "common/store_session.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct client {
    struct store *store;
    struct store_session session;
    int n_wakes;
};

static void wake(void *arg)
{
    struct client *client = arg;

    client->n_wakes++;
}

static int setup(void **state)
{
    struct client *client = calloc(1, sizeof(*client));

    if (client == NULL) {
        return -1;
    }
    client->store = store_create(0);
    store_session_init(&client->session, client->store, wake, client);
    *state = client;
    return client->store != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    struct client *client = *state;

    store_session_destroy(&client->session);
    store_destroy(client->store);
    free(client);
    return 0;
}

static const uint8_t hello[] = { 0, 0xce, 0xf7, 0x85, 0x3c };

static void put_hello(struct buf *out)
{
    assert_int_equal(buf_append(out, hello, sizeof(hello)), 0);
}

static int feed(struct client *client, const struct buf *bytes)
{
    return store_session_feed(&client->session, bytes->data, bytes->len);
}

/* GET or SET with a key of key_len and, for SET, a value of value_len. */
static void put_request(struct buf *out, enum store_op op, size_t key_len,
                        size_t value_len)
{
    uint8_t *zeros =
        calloc(1, key_len > value_len ? key_len + 1 : value_len + 1);

    assert_non_null(zeros);
    assert_int_equal(buf_append_u8(out, store_opcode_d(op)), 0);
    assert_int_equal(store_put_str(out, zeros, key_len), 0);
    if (op == STORE_OP_SET || op == STORE_OP_APPEND) {
        assert_int_equal(store_put_str(out, zeros, value_len), 0);
    }
    free(zeros);
}

static void the_longest_key_and_value_are_served(void **state)
{
    struct client *client = *state;
    struct buf bytes = { 0 };

    put_hello(&bytes);
    put_request(&bytes, STORE_OP_SET, STORE_KEY_MAX, STORE_VALUE_MAX);
    put_request(&bytes, STORE_OP_GET, STORE_KEY_MAX, 0);
    assert_int_equal(feed(client, &bytes), 0);
    assert_int_equal(client->session.out.len, 8 + STORE_VALUE_MAX);
    assert_true(le_u64(client->session.out.data) == STORE_VALUE_MAX);
    buf_destroy(&bytes);
}

/* A length alone ends the session: nothing is allocated for it. */
static void assert_length_refused(struct client *client, enum store_op op,
                                  bool key_first, uint64_t length)
{
    struct buf bytes = { 0 };

    put_hello(&bytes);
    assert_int_equal(buf_append_u8(&bytes, store_opcode_d(op)), 0);
    if (!key_first) {
        assert_int_equal(store_put_str(&bytes, "k", 1), 0);
    }
    assert_int_equal(buf_append_u64(&bytes, length), 0);
    assert_int_equal(feed(client, &bytes), -EMSGSIZE);
    assert_true(client->session.in.cap <= 64);
    buf_destroy(&bytes);
}

static void lengths_above_the_limits_end_the_session(void **state)
{
    static const struct {
        enum store_op op;
        bool key_first;
        uint64_t length;
    } rows[] = {
        { STORE_OP_GET, true, STORE_KEY_MAX + 1 },
        { STORE_OP_GET, true, 1ULL << 40 },
        { STORE_OP_GET, true, UINT64_MAX },
        { STORE_OP_SET, false, STORE_VALUE_MAX + 1 },
        { STORE_OP_SET, false, 1ULL << 63 },
        { STORE_OP_WAIT, true, STORE_KEYS_MAX + 1 },
        { STORE_OP_CHECK, true, UINT64_MAX },
        { STORE_OP_MULTI_SET, true, STORE_KEYS_MAX + 1 },
        { STORE_OP_MULTI_GET, true, 1ULL << 63 },
    };
    struct client *client = *state;
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        store_session_destroy(&client->session);
        store_session_init(&client->session, client->store, wake, client);
        assert_length_refused(client, rows[i].op, rows[i].key_first,
                              rows[i].length);
    }
}

static void a_value_may_grow_past_the_limit_of_one_request(void **state)
{
    struct client *client = *state;
    struct buf bytes = { 0 };

    put_hello(&bytes);
    put_request(&bytes, STORE_OP_APPEND, 1, STORE_VALUE_MAX);
    put_request(&bytes, STORE_OP_APPEND, 1, STORE_VALUE_MAX);
    put_request(&bytes, STORE_OP_GET, 1, 0);
    assert_int_equal(feed(client, &bytes), 0);
    assert_int_equal(client->session.out.len, 8 + 2 * (size_t)STORE_VALUE_MAX);
    buf_destroy(&bytes);
}

static void unread_replies_have_a_limit(void **state)
{
    struct client *client = *state;
    struct buf bytes = { 0 };
    int i;

    put_hello(&bytes);
    put_request(&bytes, STORE_OP_SET, 1, STORE_VALUE_MAX);
    for (i = 0; i < 20; i++) {
        put_request(&bytes, STORE_OP_GET, 1, 0);
    }
    assert_int_equal(feed(client, &bytes), -ENOBUFS);
    assert_true(client->session.out.len <= STORE_OUT_MAX);
    buf_destroy(&bytes);
}

static void one_request_has_a_limit(void **state)
{
    struct client *client = *state;
    static uint8_t value[STORE_VALUE_MAX];
    struct buf bytes = { 0 };
    int rc = 0;
    int i;

    put_hello(&bytes);
    assert_int_equal(buf_append_u8(&bytes, store_opcode_d(STORE_OP_MULTI_SET)),
                     0);
    assert_int_equal(buf_append_u64(&bytes, 100), 0);
    for (i = 0; i < 100 && rc == 0; i++) {
        assert_int_equal(store_put_str(&bytes, "k", 1), 0);
        assert_int_equal(store_put_str(&bytes, value, sizeof(value)), 0);
        rc = feed(client, &bytes);
        bytes.len = 0;
    }
    assert_int_equal(rc, -EMSGSIZE);
    assert_true(i <= 9);
    assert_int_equal(store_n_keys(client->store), 0);
    buf_destroy(&bytes);
}

static void an_idle_session_holds_no_buffer(void **state)
{
    struct client *client = *state;
    struct buf bytes = { 0 };

    put_hello(&bytes);
    put_request(&bytes, STORE_OP_SET, 1, 100000);
    assert_int_equal(store_session_feed(&client->session, bytes.data, 50000),
                     0);
    assert_true(client->session.in.cap >= 49000);
    assert_int_equal(store_session_feed(&client->session, bytes.data + 50000,
                                        bytes.len - 50000),
                     0);
    assert_int_equal(client->session.in.cap, 0);
    buf_destroy(&bytes);
}

static void another_sessions_key_wakes_a_waiter(void **state)
{
    struct client *waiting = *state;
    struct client other = { .store = waiting->store };
    struct buf bytes = { 0 };

    put_hello(&bytes);
    assert_int_equal(buf_append_u8(&bytes, store_opcode_d(STORE_OP_WAIT)), 0);
    assert_int_equal(buf_append_u64(&bytes, 1), 0);
    assert_int_equal(store_put_str(&bytes, "\0", 1), 0);
    assert_int_equal(feed(waiting, &bytes), 0);
    assert_int_equal(waiting->session.out.len, 0);

    store_session_init(&other.session, other.store, wake, &other);
    bytes.len = 0;
    put_hello(&bytes);
    put_request(&bytes, STORE_OP_SET, 1, 1);
    assert_int_equal(feed(&other, &bytes), 0);
    assert_int_equal(waiting->n_wakes, 1);
    assert_int_equal(waiting->session.out.len, 1);
    assert_int_equal(waiting->session.out.data[0], STORE_STOP_WAITING);
    store_session_destroy(&other.session);
    buf_destroy(&bytes);
}

static void a_waiter_that_leaves_is_forgotten(void **state)
{
    struct client *client = *state;
    struct client leaving = { .store = client->store };
    struct buf bytes = { 0 };

    store_session_init(&leaving.session, leaving.store, wake, &leaving);
    put_hello(&bytes);
    assert_int_equal(buf_append_u8(&bytes, store_opcode_d(STORE_OP_WAIT)), 0);
    assert_int_equal(buf_append_u64(&bytes, 1), 0);
    assert_int_equal(store_put_str(&bytes, "\0", 1), 0);
    assert_int_equal(feed(&leaving, &bytes), 0);
    store_session_destroy(&leaving.session);
    bytes.len = 0;
    put_hello(&bytes);
    put_request(&bytes, STORE_OP_SET, 1, 1);
    assert_int_equal(feed(client, &bytes), 0);
    assert_int_equal(leaving.n_wakes, 0);
    buf_destroy(&bytes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_longest_key_and_value_are_served),
        TEST(lengths_above_the_limits_end_the_session),
        TEST(a_value_may_grow_past_the_limit_of_one_request),
        TEST(unread_replies_have_a_limit),
        TEST(one_request_has_a_limit),
        TEST(an_idle_session_holds_no_buffer),
        TEST(another_sessions_key_wakes_a_waiter),
        TEST(a_waiter_that_leaves_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
