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
    struct buf out;
    int n_wakes;
};

static void wake(void *arg)
{
    struct client *client = arg;

    client->n_wakes++;
}

static int setup(void **state)
{
    const struct store_conf conf = STORE_CONF_DEFAULT;
    struct client *client = calloc(1, sizeof(*client));

    if (client == NULL) {
        return -1;
    }
    client->store = store_create(&conf);
    store_session_init(&client->session, client->store, &client->out, wake,
                       client);
    *state = client;
    return client->store != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    struct client *client = *state;

    store_session_destroy(&client->session);
    buf_destroy(&client->out);
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
    return store_session_feed(&client->session, bytes->data, bytes->len, NULL);
}

/* GET or SET with a key of key_len and, for SET, a value of value_len. */
static void put_request(struct buf *out, enum store_op op, size_t key_len,
                        size_t value_len)
{
    uint8_t *zeros =
        calloc(1, key_len > value_len ? key_len + 1 : value_len + 1);

    assert_non_null(zeros);
    assert_int_equal(
        buf_append_u8(out, (uint8_t)store_opcode(STORE_DIALECT_D, op)), 0);
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
    assert_int_equal(client->out.len, 8 + STORE_VALUE_MAX);
    assert_true(le_u64(client->out.data) == STORE_VALUE_MAX);
    buf_destroy(&bytes);
}

/* A length alone ends the session: nothing is allocated for it. */
static void assert_length_refused(struct client *client, enum store_op op,
                                  bool key_first, uint64_t length)
{
    struct buf bytes = { 0 };

    put_hello(&bytes);
    assert_int_equal(
        buf_append_u8(&bytes, (uint8_t)store_opcode(STORE_DIALECT_D, op)), 0);
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
        store_session_init(&client->session, client->store, &client->out, wake,
                           client);
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
    assert_int_equal(client->out.len, 8 + 2 * (size_t)STORE_VALUE_MAX);
    buf_destroy(&bytes);
}

/* A client that does not read is not served, and nothing is lost. */
static void requests_wait_while_replies_are_unread(void **state)
{
    struct client *client = *state;
    struct buf bytes = { 0 };
    size_t n_bytes = 0;
    int i;

    put_hello(&bytes);
    put_request(&bytes, STORE_OP_SET, 1, STORE_VALUE_MAX);
    for (i = 0; i < 20; i++) {
        put_request(&bytes, STORE_OP_GET, 1, 0);
    }
    assert_int_equal(feed(client, &bytes), 0);
    for (i = 0; i < 20; i++) {
        assert_true(store_session_is_held(&client->session));
        assert_int_equal(client->out.len, 8 + STORE_VALUE_MAX);
        n_bytes += client->out.len;
        client->out.len = 0;
        assert_int_equal(store_session_feed(&client->session, NULL, 0, NULL),
                         0);
    }
    assert_false(store_session_is_held(&client->session));
    assert_int_equal(n_bytes, 20 * (8 + STORE_VALUE_MAX));
    assert_int_equal(client->session.in.cap, 0);
    assert_int_equal(client->session.charged, 0);
    buf_destroy(&bytes);
}

static void one_reply_has_a_limit(void **state)
{
    struct client *client = *state;
    struct buf bytes = { 0 };
    struct err err;
    int i;

    put_hello(&bytes);
    put_request(&bytes, STORE_OP_SET, 1, STORE_VALUE_MAX);
    assert_int_equal(
        buf_append_u8(
            &bytes, (uint8_t)store_opcode(STORE_DIALECT_D, STORE_OP_MULTI_GET)),
        0);
    assert_int_equal(buf_append_u64(&bytes, 20), 0);
    for (i = 0; i < 20; i++) {
        assert_int_equal(store_put_str(&bytes, "\0", 1), 0);
    }
    assert_int_equal(
        store_session_feed(&client->session, bytes.data, bytes.len, &err),
        -ENOBUFS);
    assert_non_null(strstr(err.text, "MULTI_GET: more than 67108864 bytes"));
    assert_true(client->out.len <= STORE_OUT_MAX);
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
    assert_int_equal(
        buf_append_u8(
            &bytes, (uint8_t)store_opcode(STORE_DIALECT_D, STORE_OP_MULTI_SET)),
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

static void the_memory_of_requests_is_the_stores(void **state)
{
    struct client *client = *state;
    struct store_conf conf = STORE_CONF_DEFAULT;
    static uint8_t part[3000];
    struct buf bytes = { 0 };
    struct buf out = { 0 };
    struct store_session session;
    struct store *small;
    struct err err;
    int rc = 0;
    int i;

    (void)client;
    conf.max_memory = 10000;
    small = store_create(&conf);
    assert_non_null(small);
    store_session_init(&session, small, &out, wake, client);
    put_hello(&bytes);
    put_request(&bytes, STORE_OP_SET, 1, 50000);
    assert_int_equal(store_session_feed(&session, bytes.data, 100, &err), 0);
    assert_true(store_memory(small) >= 95);
    for (i = 0; i < 10 && rc == 0; i++) {
        rc = store_session_feed(&session, part, sizeof(part), &err);
    }
    assert_int_equal(rc, -ENOSPC);
    assert_non_null(strstr(err.text, "--store-max-memory"));
    assert_true(store_memory(small) <= conf.max_memory);
    store_session_destroy(&session);
    assert_int_equal(store_memory(small), 0);
    store_destroy(small);
    buf_destroy(&bytes);
}

static void a_watcher_that_does_not_read_is_cut_off(void **state)
{
    struct client *client = *state;
    struct store_conf conf = STORE_CONF_DEFAULT;
    static uint8_t value[STORE_VALUE_MAX];
    const uint8_t watch[] = { 7, 1, 0, 0, 0, 0, 0, 0, 0, 'k' };
    const struct bytes key = { .data = watch + 9, .len = 1 };
    struct buf out = { 0 };
    struct store_session session;
    struct store *store;
    int i;

    conf.legacy = STORE_LEGACY_1_13;
    store = store_create(&conf);
    assert_non_null(store);
    store_session_init(&session, store, &out, wake, client);
    assert_int_equal(store_session_feed(&session, watch, sizeof(watch), NULL),
                     0);
    assert_int_equal(out.len, 1);
    assert_int_equal(out.data[0], STORE_KEY_CALLBACK_REGISTERED);
    for (i = 0; i < 10 && session.late_error == 0; i++) {
        assert_int_equal(
            store_set(store, key,
                      (struct bytes){ .data = value, .len = sizeof(value) }),
            0);
    }
    assert_int_equal(session.late_error, -ENOBUFS);
    assert_true(out.len <= STORE_OUT_MAX);
    assert_int_equal(client->n_wakes, i);
    store_session_destroy(&session);
    store_destroy(store);
    buf_destroy(&out);
}

/* Whose connection is cut should be able to read why. */
static void each_end_has_its_sentence(void **state)
{
    static const struct {
        const char *request; /* behind the hello */
        size_t len;
        int rc;
        const char *words;
    } rows[] = {
        { "\0\xce\xf7\x85\x3c", 5, -EPROTO, "VALIDATE a second time" },
        { "\x13", 1, -EPROTO, "no request has the number 19" },
        { "\1\1\0\0\0\0\0\0\0k\1\0\0\0\0\0\0\0x"
          "\4\1\0\0\0\0\0\0\0k\1\0\0\0\0\0\0\0",
          37, -EINVAL, "ADD on a value that is no number" },
        { "\1\1\0\0\0\0\0\0\0k\0\0\0\0\0\0\0\0"
          "\1\1\0\0\0\0\0\0\0l\0\0\0\0\0\0\0\0",
          36, -EDQUOT, "SET: 1 keys are there already" },
        { "\6\1\0\0\0\0\0\0\0\x64\0\0\0\0\0\0\0"
          "----------------------------------------------------------------"
          "------------------------------------",
          117, -ENOSPC, "WAIT: the store would need more than 200 bytes" },
        { "\4\xff\xff\0\0\0\0\0\0", 9, -EMSGSIZE, "ADD: a key of 65535" },
    };
    struct client *client = *state;
    struct store_conf conf = STORE_CONF_DEFAULT;
    size_t i;

    conf.max_keys = 1;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct store_session session;
        struct buf out = { 0 };
        struct store *store;
        struct err err;

        conf.max_memory = rows[i].rc == -ENOSPC ? 200 : STORE_MEMORY_MAX;
        store = store_create(&conf);
        assert_non_null(store);
        store_session_init(&session, store, &out, wake, client);
        assert_int_equal(
            store_session_feed(&session, hello, sizeof(hello), &err), 0);
        assert_int_equal(store_session_feed(&session,
                                            (const uint8_t *)rows[i].request,
                                            rows[i].len, &err),
                         rows[i].rc);
        assert_non_null(strstr(err.text, rows[i].words));
        store_session_destroy(&session);
        store_destroy(store);
        buf_destroy(&out);
    }
}

static void an_idle_session_holds_no_buffer(void **state)
{
    struct client *client = *state;
    struct buf bytes = { 0 };

    put_hello(&bytes);
    put_request(&bytes, STORE_OP_SET, 1, 100000);
    assert_int_equal(
        store_session_feed(&client->session, bytes.data, 50000, NULL), 0);
    assert_true(client->session.in.cap >= 49000);
    assert_int_equal(store_session_feed(&client->session, bytes.data + 50000,
                                        bytes.len - 50000, NULL),
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
    assert_int_equal(buf_append_u8(&bytes, (uint8_t)store_opcode(
                                               STORE_DIALECT_D, STORE_OP_WAIT)),
                     0);
    assert_int_equal(buf_append_u64(&bytes, 1), 0);
    assert_int_equal(store_put_str(&bytes, "\0", 1), 0);
    assert_int_equal(feed(waiting, &bytes), 0);
    assert_int_equal(waiting->out.len, 0);

    store_session_init(&other.session, other.store, &other.out, wake, &other);
    bytes.len = 0;
    put_hello(&bytes);
    put_request(&bytes, STORE_OP_SET, 1, 1);
    assert_int_equal(feed(&other, &bytes), 0);
    assert_int_equal(waiting->n_wakes, 1);
    assert_int_equal(waiting->out.len, 1);
    assert_int_equal(waiting->out.data[0], STORE_STOP_WAITING);
    store_session_destroy(&other.session);
    buf_destroy(&bytes);
}

static void a_waiter_that_leaves_is_forgotten(void **state)
{
    struct client *client = *state;
    struct client leaving = { .store = client->store };
    struct buf bytes = { 0 };

    store_session_init(&leaving.session, leaving.store, &leaving.out, wake,
                       &leaving);
    put_hello(&bytes);
    assert_int_equal(buf_append_u8(&bytes, (uint8_t)store_opcode(
                                               STORE_DIALECT_D, STORE_OP_WAIT)),
                     0);
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
        TEST(requests_wait_while_replies_are_unread),
        TEST(one_reply_has_a_limit),
        TEST(the_memory_of_requests_is_the_stores),
        TEST(a_watcher_that_does_not_read_is_cut_off),
        TEST(one_request_has_a_limit),
        TEST(each_end_has_its_sentence),
        TEST(an_idle_session_holds_no_buffer),
        TEST(another_sessions_key_wakes_a_waiter),
        TEST(a_waiter_that_leaves_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
