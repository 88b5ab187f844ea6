/*
 * The store's client: what it asks, and what it makes of answers, of our server
 * and of one that says what a test wants.
 */
#include "common/clock.h"
#include "common/store_proto.h"
#include "tests/unit/listening.h"
#include "tests/unit/served_store.h"
#include "tests/unit/unit.h"
#include "worker/flaunch.h"
#include "worker/store_client.h"
#include "worker/store_reply.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG_MS 60000

static struct bytes text(const char *s)
{
    return (struct bytes){ .data = (const uint8_t *)s, .len = strlen(s) };
}

static void assert_text(struct buf *value, const char *wanted)
{
    assert_int_equal(value->len, strlen(wanted));
    if (value->len > 0) {
        assert_memory_equal(value->data, wanted, value->len);
    }
    buf_destroy(value);
}

/* --- replies ---------------------------------------------------------------
 */

static void replies_are_read_by_what_was_asked(void **state)
{
    static const struct {
        enum store_reply_kind kind;
        uint64_t n_strings;
        const char *bytes;
        size_t len;
        int rc;
        size_t pos;
        int64_t number;
    } rows[] = {
        { STORE_REPLY_CODE, 0, "\0", 1, 1, 1, 0 },
        { STORE_REPLY_CODE, 0, "\1\0", 2, 1, 1, 1 },
        { STORE_REPLY_CODE, 0, "\2", 1, -EPROTO, 0, 0 },
        { STORE_REPLY_CANCELED, 0, "\1", 1, 1, 1, 1 },
        { STORE_REPLY_CANCELED, 0, "\0", 1, 0, 0, 0 },
        { STORE_REPLY_CANCELED, 0, "\0\1", 2, 1, 2, 1 },
        { STORE_REPLY_CANCELED, 0, "\0\0", 2, -EPROTO, 0, 0 },
        { STORE_REPLY_U32, 0, "\1\2\0\0", 4, 1, 4, 513 },
        { STORE_REPLY_NUMBER, 0, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, 1, 8,
          -1 },
        { STORE_REPLY_NUMBER, 0, "\0\0\0\0\0\0\0", 7, 0, 0, 0 },
        { STORE_REPLY_STRINGS, 0, "", 0, 1, 0, 0 },
        { STORE_REPLY_STRINGS, 2, "\1\0\0\0\0\0\0\0a\0\0\0\0\0\0\0\0", 17, 1,
          17, 0 },
        { STORE_REPLY_STRINGS, 1, "\2\0\0\0\0\0\0\0a", 9, 0, 0, 0 },
        { STORE_REPLY_STRINGS, 1, "\0\0\0\0\0\0\0\x80", 8, -EMSGSIZE, 0, 0 },
        { STORE_REPLY_STRINGS, 1, "\xff\xff\xff\xff\xff\xff\xff\xff", 8,
          -EMSGSIZE, 0, 0 },
        { STORE_REPLY_LIST, 0, "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0/k", 18, 1, 18,
          1 },
        { STORE_REPLY_LIST, 0, "\0\0\0\0\0\0\0\0", 8, 1, 8, 0 },
        { STORE_REPLY_LIST, 0, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, -EPROTO,
          0, 0 },
        { STORE_REPLY_POP, 0, "\0\0\0\0\0\0\0\0", 8, 1, 8, 0 },
        { STORE_REPLY_POP, 0, "\7\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0e", 17, 1, 17,
          7 },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct store_reply reply;
        size_t len;
        int rc = 0;

        store_reply_begin(&reply, rows[i].kind, rows[i].n_strings);
        for (len = 0; len <= rows[i].len && rc == 0; len++) {
            uint8_t *copy = malloc(len + 1); /* ASan sees what is past len */

            assert_non_null(copy);
            memcpy(copy, rows[i].bytes, len);
            copy = realloc(copy, len > 0 ? len : 1);
            rc = store_reply_next(&reply, copy, len);
            free(copy);
        }
        assert_int_equal(rc, rows[i].rc);
        if (rc > 0) {
            assert_int_equal(reply.pos, rows[i].pos);
            assert_true(reply.number == rows[i].number);
        }
    }
}

/* --- our server --------------------------------------------------------------
 */

static struct store_client connected(uint16_t port, enum store_wanted wanted)
{
    struct store_client client;
    struct err err;

    if (store_client_connect_any(&client, "127.0.0.1", port, wanted,
                                 clock_deadline(LONG_MS), &err) < 0) {
        fail_msg("%s", err.text);
    }
    return client;
}

/* What servers of every release know. */
static void try_old_calls(struct store_client *client)
{
    static const char *const keys[] = { "k", "c" };
    static const char *const missing[] = { "k", "none" };
    uint64_t deadline_ms = clock_deadline(LONG_MS);
    struct buf value;
    int64_t number;
    bool answer;
    struct err err;

    assert_int_equal(
        store_client_set(client, "k", text("v1"), deadline_ms, &err), 0);
    assert_int_equal(store_client_get(client, "k", deadline_ms, &value, &err),
                     0);
    assert_text(&value, "v1");
    assert_int_equal(store_client_set(client, "e", text(""), deadline_ms, &err),
                     0);
    assert_int_equal(store_client_get(client, "e", deadline_ms, &value, &err),
                     0);
    assert_text(&value, "");
    assert_int_equal(
        store_client_add(client, "c", -7, deadline_ms, &number, &err), 0);
    assert_true(number == -7);
    assert_int_equal(store_client_compare_set(client, "n", text(""), text("a"),
                                              deadline_ms, &value, &err),
                     0);
    assert_text(&value, "a");
    assert_int_equal(store_client_compare_set(client, "n", text("z"), text("b"),
                                              deadline_ms, &value, &err),
                     0);
    assert_text(&value, "a");
    assert_int_equal(store_client_wait_all(client, keys, 2, deadline_ms, &err),
                     0);
    assert_int_equal(
        store_client_check_all(client, keys, 2, deadline_ms, &answer, &err), 0);
    assert_true(answer);
    assert_int_equal(
        store_client_check_all(client, missing, 2, deadline_ms, &answer, &err),
        0);
    assert_false(answer);
    assert_int_equal(store_client_num_keys(client, deadline_ms, &number, &err),
                     0);
    assert_true(number == 4);
    assert_int_equal(
        store_client_delete(client, "n", deadline_ms, &answer, &err), 0);
    assert_true(answer);
    assert_int_equal(
        store_client_delete(client, "n", deadline_ms, &answer, &err), 0);
    assert_false(answer);
    /* A wait and a get in vain, and all is in step afterwards. */
    assert_int_equal(
        store_client_wait_all(client, missing, 2, clock_deadline(20), &err),
        -ETIMEDOUT);
    assert_non_null(strstr(err.text, "in vain for key"));
    assert_non_null(strstr(err.text, "none"));
    assert_int_equal(
        store_client_get(client, "never", clock_deadline(20), &value, &err),
        -ETIMEDOUT);
    assert_non_null(strstr(err.text, "in vain for key never"));
    assert_int_equal(
        store_client_add(client, "c", 8, deadline_ms, &number, &err), 0);
    assert_true(number == 1);
    assert_int_equal(
        store_client_barrier(client, "alone", 1, deadline_ms, &err), 0);
}

/* What 2.1 has brought. */
static void try_middle_calls(struct store_client *client)
{
    static const char *const keys[] = { "a", "b" };
    const struct bytes values[] = { text("1"), text("") };
    uint64_t deadline_ms = clock_deadline(LONG_MS);
    struct buf got[2];
    struct err err;

    assert_int_equal(
        store_client_append(client, "l", text("xy"), deadline_ms, &err), 0);
    assert_int_equal(
        store_client_append(client, "l", text("z"), deadline_ms, &err), 0);
    assert_int_equal(store_client_get(client, "l", deadline_ms, got, &err), 0);
    assert_text(got, "xyz");
    assert_int_equal(
        store_client_multi_set(client, keys, values, 2, deadline_ms, &err), 0);
    assert_int_equal(
        store_client_multi_get(client, keys, 2, deadline_ms, got, &err), 0);
    assert_text(&got[0], "1");
    assert_text(&got[1], "");
}

static void every_call_of_a_new_server(void **state)
{
    struct fixture *fixture = *state;
    struct store_client client = connected(fixture->port, STORE_WANT_ANY);
    uint64_t deadline_ms = clock_deadline(LONG_MS);
    struct buf value;
    int64_t number;
    char **keys;
    size_t n;
    struct err err;

    assert_int_equal(client.dialect, STORE_DIALECT_D);
    try_old_calls(&client);
    assert_false(client.one_by_one);
    try_middle_calls(&client);
    assert_int_equal(store_client_ping(&client, 42, deadline_ms, &err), 0);
    assert_int_equal(
        store_client_queue_pop(&client, "q", false, deadline_ms, &value, &err),
        -ENODATA);
    assert_non_null(strstr(err.text, "queue q is empty"));
    assert_int_equal(
        store_client_queue_push(&client, "q", text("one"), deadline_ms, &err),
        0);
    assert_int_equal(
        store_client_queue_len(&client, "q", deadline_ms, &number, &err), 0);
    assert_true(number == 1);
    assert_int_equal(
        store_client_queue_pop(&client, "q", true, deadline_ms, &value, &err),
        0);
    assert_text(&value, "one");
    assert_int_equal(store_client_queue_pop(&client, "q", true,
                                            clock_deadline(20), &value, &err),
                     -ETIMEDOUT);
    assert_int_equal(
        store_client_barrier(&client, "both", 2, clock_deadline(20), &err),
        -ETIMEDOUT);
    assert_non_null(strstr(err.text, "2 clients at barrier both"));
    assert_int_equal(store_client_barrier(&client, "l", 2, deadline_ms, &err),
                     -EINVAL);
    assert_non_null(strstr(err.text, "at barrier l is no number"));
    assert_int_equal(
        store_client_list_keys(&client, deadline_ms, &keys, &n, &err), 0);
    assert_int_equal(n, 8); /* k e c alone l a b, and the barrier's */
    while (n-- > 0) {
        assert_true(strlen(keys[n]) >= 1 && keys[n][0] != '/');
    }
    free(keys);
    store_client_close(&client);
}

/* Our own server, told to take clients of 1.13 or 2.1. */
static void try_old_server(enum store_legacy legacy, enum store_wanted wanted)
{
    struct store_conf conf = STORE_CONF_DEFAULT;
    struct store_host *host;
    struct store_client client;
    uint64_t deadline_ms = clock_deadline(LONG_MS);
    struct buf value;
    int64_t number;
    struct err err;
    uint16_t port;

    conf.legacy = legacy;
    assert_int_equal(serve_store(NET_LOOPBACK, &conf, NULL, &host, &port), 0);
    client = connected(port, wanted);
    try_old_calls(&client);
    if (wanted == STORE_WANT_C) {
        try_middle_calls(&client);
    } else {
        assert_int_equal(
            store_client_append(&client, "l", text("x"), deadline_ms, &err),
            -ENOTSUP);
        assert_non_null(strstr(err.text, "its release has no APPEND"));
    }
    assert_int_equal(
        store_client_queue_pop(&client, "q", false, deadline_ms, &value, &err),
        -ENOTSUP);
    assert_int_equal(
        store_client_add(&client, "c", 0, deadline_ms, &number, &err), 0);
    store_client_close(&client);
    store_host_stop(host);
}

static void calls_of_dialect_a(void **state)
{
    (void)state;
    try_old_server(STORE_LEGACY_1_13, STORE_WANT_A);
}

static void calls_of_dialect_c(void **state)
{
    (void)state;
    try_old_server(STORE_LEGACY_2_1, STORE_WANT_C);
}

/* --- a server that says what a test wants
 * -------------------------------------- */

struct step {
    size_t n_wanted;   /* bytes to read first; SIZE_MAX: until the end */
    const char *reply; /* then this is said */
    size_t len;
    bool closes;
};

struct script {
    int listener;
    uint16_t port;
    const struct step *steps; /* n_wanted 0 and no reply: the end */
    size_t n_reads;           /* recv calls that brought something */
    size_t n_accepted;
};

#define HELLO_REPLY "\0\0\0\0\0\0\0\0"
/* A hello and GETNUMKEYS, as every client of dialect D begins. */
#define HELLO                                                                  \
    {                                                                          \
        6, HELLO_REPLY, 8, false                                               \
    }

static void *play(void *arg)
{
    struct script *script = arg;
    const struct step *step = script->steps;
    uint8_t data[4096];
    int fd = -1;

    while (step->n_wanted > 0 || step->len > 0 || step->closes) {
        size_t n = 0;

        if (fd < 0) {
            struct pollfd ready = { .fd = script->listener, .events = POLLIN };

            if (poll(&ready, 1, LONG_MS) < 1) {
                return NULL;
            }
            fd = accept(script->listener, NULL, NULL);
            script->n_accepted++;
        }
        while (n < step->n_wanted) {
            ssize_t got = recv(fd, data, sizeof(data), 0);

            if (got <= 0) {
                break;
            }
            n += (size_t)got;
            script->n_reads++;
        }
        if (step->len > 0) {
            (void)send(fd, step->reply, step->len, MSG_NOSIGNAL);
        }
        if (step->closes) {
            (void)close(fd);
            fd = -1;
        }
        step++;
    }
    if (fd >= 0) {
        while (recv(fd, data, sizeof(data), 0) > 0) {
        }
        (void)close(fd);
    }
    return NULL;
}

static void script_begin(struct script *script, const struct step *steps,
                         pthread_t *thread)
{
    *script = (struct script){ .steps = steps };
    assert_int_equal(
        listen_one(NET_LOOPBACK, 0, &script->listener, &script->port, NULL), 0);
    assert_int_equal(pthread_create(thread, NULL, play, script), 0);
}

static void script_end(struct script *script, pthread_t thread)
{
    (void)shutdown(script->listener, SHUT_RDWR);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(script->listener);
}

/* One key "k" in a WAIT and in a GET. */
#define WAIT_LEN (1 + 8 + 8 + 2)
#define GET_LEN (1 + 8 + 2)

static void a_get_is_one_round_trip(void **state)
{
    static const struct step steps[] = {
        HELLO,
        { WAIT_LEN + GET_LEN, "\0\2\0\0\0\0\0\0\0v1", 11, false },
        { 0, NULL, 0, false },
    };
    struct script script;
    struct store_client client;
    struct buf value;
    pthread_t thread;
    struct err err;

    (void)state;
    script_begin(&script, steps, &thread);
    client = connected(script.port, STORE_WANT_D);
    assert_int_equal(
        store_client_get(&client, "k", clock_deadline(LONG_MS), &value, &err),
        0);
    assert_text(&value, "v1");
    store_client_close(&client);
    script_end(&script, thread);
    assert_int_equal(script.n_reads, 2); /* the hello, and one more */
}

/* As PyTorch's threaded servers do where the key is missing. */
static void a_server_that_closes_on_get_is_asked_one_by_one(void **state)
{
    static const struct step steps[] = {
        HELLO,
        { WAIT_LEN + GET_LEN, NULL, 0, true },
        HELLO,
        { WAIT_LEN, "\0", 1, false },
        { GET_LEN, "\2\0\0\0\0\0\0\0v1", 10, false },
        { 0, NULL, 0, false },
    };
    struct script script;
    struct store_client client;
    struct buf value;
    pthread_t thread;
    struct err err;

    (void)state;
    script_begin(&script, steps, &thread);
    client = connected(script.port, STORE_WANT_D);
    assert_int_equal(
        store_client_get(&client, "k", clock_deadline(LONG_MS), &value, &err),
        0);
    assert_text(&value, "v1");
    assert_true(client.one_by_one);
    store_client_close(&client);
    script_end(&script, thread);
    assert_int_equal(script.n_accepted, 2);
}

/* Nine zeros: GET was answered before the key came. */
static void a_key_that_comes_meanwhile_is_got(void **state)
{
    static const struct step steps[] = {
        HELLO,
        { WAIT_LEN + GET_LEN, "\0\0\0\0\0\0\0\0\0", 9, false },
        { WAIT_LEN, "\0", 1, false },
        { GET_LEN, "\2\0\0\0\0\0\0\0v1", 10, false },
        { 0, NULL, 0, false },
    };
    struct script script;
    struct store_client client;
    struct buf value;
    pthread_t thread;

    (void)state;
    script_begin(&script, steps, &thread);
    client = connected(script.port, STORE_WANT_D);
    assert_int_equal(
        store_client_get(&client, "k", clock_deadline(LONG_MS), &value, NULL),
        0);
    assert_text(&value, "v1");
    store_client_close(&client);
    script_end(&script, thread);
}

/* A time limit shorter than the way there and back costs no connection. */
static void a_get_without_time_leaves_the_connection_in_step(void **state)
{
    struct fixture *fixture = *state;
    struct store_client client = connected(fixture->port, STORE_WANT_D);
    struct buf value;
    struct err err;
    int64_t sum;
    int i;

    for (i = 0; i < 50; i++) {
        assert_int_equal(
            store_client_get(&client, "never", clock_ms(), &value, &err),
            -ETIMEDOUT);
        assert_non_null(strstr(err.text, "in vain for key never"));
        assert_int_equal(store_client_add(&client, "n", 1,
                                          clock_deadline(LONG_MS), &sum, &err),
                         0);
        assert_true(sum == i + 1);
    }
    store_client_close(&client);
}

/* What is no answer closes the connection, and the sentence says what for. */
static void lies_end_the_connection(void **state)
{
    static const struct {
        const char *reply;
        size_t len;
        int rc;
    } rows[] = {
        { "\2\2\0\0\0\0\0\0\0", 9, -EPROTO },                   /* no code */
        { "\0\xff\xff\xff\xff\xff\xff\xff\x7f", 9, -EMSGSIZE }, /* too long */
        { "\0\1\0\0\0\0\0\0\0vx", 11, -EPROTO },                /* too much */
        { "\0\5\0\0\0\0\0\0\0v", 10, -ETIMEDOUT },              /* too little */
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct step steps[] = {
            HELLO,
            { WAIT_LEN + GET_LEN, rows[i].reply, rows[i].len, false },
            { 0, NULL, 0, false },
        };
        struct script script;
        struct store_client client;
        struct buf value;
        pthread_t thread;
        struct err err;

        script_begin(&script, steps, &thread);
        client = connected(script.port, STORE_WANT_D);
        assert_int_equal(
            store_client_get(&client, "k", clock_deadline(200), &value, &err),
            rows[i].rc);
        assert_int_equal(client.fd, -1);
        assert_non_null(strstr(err.text, "store 127.0.0.1 port "));
        assert_non_null(strstr(err.text, "of key k, after 0."));
        assert_int_equal(
            store_client_get(&client, "k", clock_deadline(200), &value, &err),
            -ENOTCONN);
        script_end(&script, thread);
    }
}

static void a_request_that_is_not_known_leaves_the_client_usable(void **state)
{
    static const struct step steps[] = {
        HELLO,
        { 1, NULL, 0, true }, /* LIST_KEYS */
        HELLO,
        { 1 + 8 + 2 + 8 + 1 + 1 + 8 + 2, NULL, 0, true }, /* QUEUE_PUSH, LEN */
        HELLO,
        { 1 + 8 + 2 + 8, "\5\0\0\0\0\0\0\0", 8, false }, /* ADD */
        { 0, NULL, 0, false },
    };
    struct script script;
    struct store_client client;
    uint64_t deadline_ms = clock_deadline(LONG_MS);
    pthread_t thread;
    struct err err;
    int64_t sum;
    char **keys;
    size_t n;

    (void)state;
    script_begin(&script, steps, &thread);
    client = connected(script.port, STORE_WANT_D);
    assert_int_equal(
        store_client_list_keys(&client, deadline_ms, &keys, &n, &err),
        -ENOTSUP);
    assert_non_null(strstr(err.text, "it knows no LIST_KEYS (PyTorch 2.10"));
    assert_int_equal(
        store_client_queue_push(&client, "q", text("x"), deadline_ms, &err),
        -ENOTSUP);
    assert_int_equal(store_client_add(&client, "c", 5, deadline_ms, &sum, &err),
                     0);
    assert_true(sum == 5);
    store_client_close(&client);
    script_end(&script, thread);
}

/* CANCEL_WAIT is answered by the end of the wait, and then by itself. */
static void a_wait_that_ends_as_it_is_cancelled(void **state)
{
    static const struct step steps[] = {
        HELLO,
        { WAIT_LEN, NULL, 0, false },
        { 1, "\0\1", 2, false },           /* CANCEL_WAIT */
        { 1 + 8 + 8 + 2, "\0", 1, false }, /* CHECK: it is there */
        { 0, NULL, 0, false },
    };
    struct script script;
    struct store_client client;
    pthread_t thread;
    struct err err;

    (void)state;
    script_begin(&script, steps, &thread);
    client = connected(script.port, STORE_WANT_D);
    assert_int_equal(store_client_wait(&client, "k", clock_deadline(20), &err),
                     0);
    assert_true(client.fd >= 0);
    store_client_close(&client);
    script_end(&script, thread);
}

/* A server of 2.1 is silent to a hello; then it answers CANCEL_WAIT. */
static void a_server_of_2_1_is_found_out(void **state)
{
    static const struct step steps[] = {
        { SIZE_MAX, NULL, 0, true },
        { 1, "\1", 1, false },
        { 1 + 8 + 2 + 8, "\5\0\0\0\0\0\0\0", 8, false }, /* ADD */
        { 0, NULL, 0, false },
    };
    struct script script;
    struct store_client client;
    pthread_t thread;
    int64_t sum;

    (void)state;
    script_begin(&script, steps, &thread);
    client = connected(script.port, STORE_WANT_ANY);
    assert_int_equal(client.dialect, STORE_DIALECT_C);
    assert_int_equal(
        store_client_add(&client, "c", 5, clock_deadline(LONG_MS), &sum, NULL),
        0);
    store_client_close(&client);
    script_end(&script, thread);
}

/* One of 1.13 closes on it. */
static void a_server_of_1_13_is_found_out(void **state)
{
    static const struct step steps[] = {
        { SIZE_MAX, NULL, 0, true },
        { 1, NULL, 0, true },
        { 1, HELLO_REPLY, 8, false }, /* GETNUMKEYS */
        { 0, NULL, 0, false },
    };
    struct script script;
    struct store_client client;
    pthread_t thread;

    (void)state;
    script_begin(&script, steps, &thread);
    client = connected(script.port, STORE_WANT_ANY);
    assert_int_equal(client.dialect, STORE_DIALECT_A);
    store_client_close(&client);
    script_end(&script, thread);
}

static void releases_are_named(void **state)
{
    enum store_wanted wanted;

    (void)state;
    assert_int_equal(store_wanted_parse("auto", &wanted), 0);
    assert_int_equal(wanted, STORE_WANT_ANY);
    assert_int_equal(store_wanted_parse("1.13", &wanted), 0);
    assert_int_equal(wanted, STORE_WANT_A);
    assert_int_equal(store_wanted_parse("2.0", &wanted), -EINVAL);
}

static void what_is_too_long_is_not_sent(void **state)
{
    struct fixture *fixture = *state;
    struct store_client client = connected(fixture->port, STORE_WANT_D);
    uint64_t deadline_ms = clock_deadline(LONG_MS);
    static char key[STORE_KEY_MAX + 1];
    struct bytes value = { .data = (const uint8_t *)key,
                           .len = STORE_VALUE_MAX + 1 };
    int64_t n;

    memset(key, 'k', STORE_KEY_MAX);
    assert_int_equal(
        store_client_set(&client, key, text("v"), deadline_ms, NULL),
        -EMSGSIZE);
    assert_int_equal(store_client_set(&client, "k", value, deadline_ms, NULL),
                     -EMSGSIZE);
    assert_int_equal(store_client_num_keys(&client, deadline_ms, &n, NULL), 0);
    assert_true(n == 0);
    store_client_close(&client);
}

static void mistakes_of_the_caller_are_errors(void **state)
{
    static const char *const keys[] = { "k", NULL };
    struct fixture *fixture = *state;
    uint64_t deadline = flaunch_deadline(LONG_MS);
    struct flaunch_bytes values[1];
    struct flaunch_store *store;
    struct flaunch_error error;
    void *value;
    size_t len;
    int64_t n;
    int yes;

    assert_int_equal(
        flaunch_store_connect(&store, "127.0.0.1", 0, NULL, deadline, &error),
        -EINVAL);
    assert_int_equal(error.domain, FLAUNCH_USAGE);
    assert_int_equal(flaunch_store_connect(&store, "127.0.0.1", fixture->port,
                                           "3.0", deadline, &error),
                     -EINVAL);
    assert_non_null(strstr(error.text, "release is none of"));
    assert_int_equal(flaunch_store_connect(&store, "127.0.0.1", fixture->port,
                                           "2.2", deadline, &error),
                     0);
    assert_int_equal(flaunch_store_set(NULL, "k", "v", 1, deadline, &error),
                     -EINVAL);
    assert_int_equal(flaunch_store_set(store, NULL, "v", 1, deadline, &error),
                     -EINVAL);
    assert_int_equal(
        flaunch_store_get(store, NULL, &value, &len, deadline, NULL), -EINVAL);
    assert_int_equal(flaunch_store_wait(store, keys, 2, deadline, &error),
                     -EINVAL);
    assert_non_null(strstr(error.text, "a key is NULL"));
    assert_int_equal(flaunch_store_wait(store, NULL, 1, deadline, &error),
                     -EINVAL);
    assert_int_equal(flaunch_store_num_keys(NULL, &n, deadline, NULL), -EINVAL);
    /* Nothing asked for is nothing wrong. */
    assert_int_equal(flaunch_store_wait(store, NULL, 0, deadline, &error), 0);
    assert_int_equal(
        flaunch_store_multi_get(store, NULL, 0, values, deadline, &error), 0);
    assert_int_equal(
        flaunch_store_multi_set(store, NULL, NULL, 0, deadline, &error), 0);
    assert_int_equal(
        flaunch_store_check(store, NULL, 0, &yes, deadline, &error), 0);
    assert_true(yes);
    assert_int_equal(flaunch_store_num_keys(store, &n, deadline, &error), 0);
    assert_true(n == 0);
    flaunch_store_close(store);
    flaunch_store_close(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_are_read_by_what_was_asked),
        TEST(every_call_of_a_new_server),
        cmocka_unit_test(calls_of_dialect_a),
        cmocka_unit_test(calls_of_dialect_c),
        cmocka_unit_test(a_get_is_one_round_trip),
        cmocka_unit_test(a_server_that_closes_on_get_is_asked_one_by_one),
        cmocka_unit_test(a_key_that_comes_meanwhile_is_got),
        TEST(a_get_without_time_leaves_the_connection_in_step),
        cmocka_unit_test(lies_end_the_connection),
        cmocka_unit_test(a_request_that_is_not_known_leaves_the_client_usable),
        cmocka_unit_test(a_wait_that_ends_as_it_is_cancelled),
        cmocka_unit_test(a_server_of_2_1_is_found_out),
        cmocka_unit_test(a_server_of_1_13_is_found_out),
        cmocka_unit_test(releases_are_named),
        TEST(what_is_too_long_is_not_sent),
        TEST(mistakes_of_the_caller_are_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
