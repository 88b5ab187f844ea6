/*
 * Every captured conversation of dialects A, C and D, fed whole, byte by byte,
 * and cut in two at every place.
 */
#include "common/store_session.h"
#include "tests/unit/unit.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNS_MAX 32
#define STEPS_MAX 64
#define CASES_MAX 128

enum step_kind {
    STEP_SEND,
    STEP_RECV,
    STEP_KEYS, /* of LIST_KEYS: in any order */
    STEP_CLOSE,
};

struct step {
    enum step_kind kind;
    char conn[8];
    uint8_t *data;
    size_t len;
    bool closed;
};

struct test_case {
    char name[64];
    struct step steps[STEPS_MAX];
    size_t n_steps;
    size_t longest_send;
};

struct conn {
    char name[8];
    struct store_session session;
    struct buf out;
    bool ended;
};

static struct test_case cases[CASES_MAX];
static size_t n_cases;
static struct conn conns[CONNS_MAX];
static size_t n_conns;
static struct store *store;

static void nothing(void *arg)
{
    (void)arg;
}

static uint8_t *from_hex(const char *hex, size_t *len_out)
{
    size_t len = strcmp(hex, "-") == 0 ? 0 : strlen(hex) / 2;
    uint8_t *data = malloc(len + 1);
    size_t i;

    assert_non_null(data);
    for (i = 0; i < len; i++) {
        unsigned value;

        assert_int_equal(sscanf(hex + 2 * i, "%2x", &value), 1);
        data[i] = (uint8_t)value;
    }
    *len_out = len;
    return data;
}

static void line_read(const char *line)
{
    struct test_case *at = n_cases > 0 ? &cases[n_cases - 1] : NULL;
    static char hex[70000];
    char kind[8];
    char conn[8];
    char state[8] = "";
    struct step *step;
    int n = sscanf(line, "%7s %7s %69999s %7s", kind, conn, hex, state);

    if (n < 1 || kind[0] == '#') {
        return;
    }
    if (strcmp(kind, "case") == 0) {
        assert_true(n_cases < CASES_MAX);
        at = &cases[n_cases++];
        (void)sscanf(line, "case %63[^:]", at->name);
        return;
    }
    assert_non_null(at);
    if (strcmp(kind, "ours") == 0) {
        step = &at->steps[at->n_steps - 1]; /* instead of theirs */
        assert_true(step->kind == STEP_RECV || step->kind == STEP_KEYS);
        free(step->data);
    } else {
        assert_true(at->n_steps < STEPS_MAX);
        step = &at->steps[at->n_steps++];
        step->kind = strcmp(kind, "send") == 0   ? STEP_SEND
                     : strcmp(kind, "recv") == 0 ? STEP_RECV
                     : strcmp(kind, "keys") == 0 ? STEP_KEYS
                                                 : STEP_CLOSE;
    }
    (void)snprintf(step->conn, sizeof(step->conn), "%s", conn);
    if (step->kind != STEP_CLOSE) {
        step->data = from_hex(hex, &step->len);
        step->closed = strcmp(state, "closed") == 0;
    }
    if (step->kind == STEP_SEND && step->len > at->longest_send) {
        at->longest_send = step->len;
    }
}

static void file_read(const char *name)
{
    static char line[80000];
    char path[256];
    FILE *file;

    (void)snprintf(path, sizeof(path), "tests/vectors/%s.txt", name);
    file = fopen(path, "r");
    assert_non_null(file);
    n_cases = 0;
    memset(cases, 0, sizeof(cases));
    while (fgets(line, sizeof(line), file) != NULL) {
        line_read(line);
    }
    (void)fclose(file);
    assert_true(n_cases > 0);
}

static void cases_free(void)
{
    size_t i;
    size_t j;

    for (i = 0; i < n_cases; i++) {
        for (j = 0; j < cases[i].n_steps; j++) {
            free(cases[i].steps[j].data);
        }
    }
}

static struct conn *conn_find(const char *name)
{
    struct conn *conn;
    size_t i;

    for (i = 0; i < n_conns; i++) {
        if (strcmp(conns[i].name, name) == 0) {
            return &conns[i];
        }
    }
    assert_true(n_conns < CONNS_MAX);
    conn = &conns[n_conns++];
    memset(conn, 0, sizeof(*conn));
    (void)snprintf(conn->name, sizeof(conn->name), "%s", name);
    store_session_init(&conn->session, store, &conn->out, nothing, NULL);
    return conn;
}

static void conns_close(void)
{
    size_t i;

    for (i = 0; i < n_conns; i++) {
        if (conns[i].name[0] != '\0') {
            store_session_destroy(&conns[i].session);
            buf_destroy(&conns[i].out);
        }
    }
    n_conns = 0;
}

/* Feed one piece, in memory of its own so that ASan sees a read past it. */
static void feed(struct conn *conn, const uint8_t *data, size_t len)
{
    uint8_t *copy;

    if (conn->ended || len == 0) {
        return;
    }
    copy = malloc(len);
    assert_non_null(copy);
    memcpy(copy, data, len);
    conn->ended = store_session_feed(&conn->session, copy, len, NULL) < 0;
    free(copy);
}

/* cut 0: whole; SIZE_MAX: every byte alone; else two pieces. */
static void send_cut(struct conn *conn, const struct step *step, size_t cut)
{
    size_t i;

    if (cut == SIZE_MAX) {
        for (i = 0; i < step->len; i++) {
            feed(conn, step->data + i, 1);
        }
        return;
    }
    if (cut > step->len) {
        cut = 0;
    }
    feed(conn, step->data, cut);
    feed(conn, step->data + cut, step->len - cut);
}

static int compare_keys(const void *a, const void *b)
{
    const struct bytes *left = a;
    const struct bytes *right = b;
    size_t len = left->len < right->len ? left->len : right->len;
    int order = memcmp(left->data, right->data, len);

    return order != 0 ? order
                      : (left->len > right->len) - (left->len < right->len);
}

/* Put the keys of a reply to LIST_KEYS in order; they come in none. */
static void sort_keys(uint8_t *reply, size_t len)
{
    struct bytes keys[64];
    uint8_t *copy = malloc(len);
    size_t n = 0;
    size_t at;
    size_t i;

    assert_non_null(copy);
    memcpy(copy, reply, len);
    for (at = 8; at + 8 <= len; at += 8 + keys[n++].len) {
        assert_true(n < 64);
        keys[n] = (struct bytes){ .data = copy + at + 8,
                                  .len = (size_t)le_u64(copy + at) };
        assert_true(keys[n].len <= len - at - 8);
    }
    qsort(keys, n, sizeof(keys[0]), compare_keys);
    for (i = 0, at = 8; i < n; i++) {
        le_put_u64(reply + at, keys[i].len);
        memcpy(reply + at + 8, keys[i].data, keys[i].len);
        at += 8 + keys[i].len;
    }
    free(copy);
}

/* A client that waits for its answer is silent: that decides what it meant. */
static void be_silent(struct conn *conn)
{
    if (!conn->ended && store_session_undecided(&conn->session)) {
        store_session_settle(&conn->session);
        conn->ended = store_session_feed(&conn->session, NULL, 0, NULL) < 0;
    }
}

static void receive(const char *name, struct conn *conn,
                    const struct step *step)
{
    struct buf *out = &conn->out;

    be_silent(conn);
    if (step->kind == STEP_KEYS && out->len == step->len) {
        sort_keys(out->data, out->len);
        sort_keys(step->data, step->len);
    }
    if (out->len < step->len ||
        (step->len > 0 && memcmp(out->data, step->data, step->len) != 0) ||
        (step->closed && !conn->ended)) {
        size_t i;

        print_error("%s, connection %s: wanted %s, got %zu bytes:", name,
                    step->conn, step->closed ? "an end" : "an answer",
                    out->len);
        for (i = 0; i < out->len && i < 64; i++) {
            print_error("%02x", out->data[i]);
        }
        print_error(" ended %d\n", conn->ended);
        fail();
    }
    buf_consume(out, step->len);
    assert_true(step->closed || !conn->ended);
}

static void case_run(const struct test_case *test, size_t cut)
{
    size_t i;

    for (i = 0; i < test->n_steps; i++) {
        const struct step *step = &test->steps[i];
        struct conn *conn = conn_find(step->conn);

        switch (step->kind) {
        case STEP_SEND:
            send_cut(conn, step, cut);
            break;
        case STEP_RECV:
        case STEP_KEYS:
            receive(test->name, conn, step);
            break;
        case STEP_CLOSE:
            store_session_destroy(&conn->session);
            buf_destroy(&conn->out);
            conn->name[0] = '\0';
            break;
        }
    }
    for (i = 0; i < n_conns; i++) {
        if (conns[i].out.len > 0) {
            print_error("%s, connection %s: %zu bytes too many\n", test->name,
                        conns[i].name, conns[i].out.len);
        }
        assert_int_equal(conns[i].out.len, 0);
    }
}

/*
 * Run all cases in order on one store, the case `special` cut as told and the
 * others whole.
 */
static void file_run(const struct store_conf *conf, bool keep_conns,
                     size_t special, size_t cut)
{
    size_t i;

    store = store_create(conf);
    assert_non_null(store);
    for (i = 0; i < n_cases; i++) {
        case_run(&cases[i], i == special || special == SIZE_MAX ? cut : 0);
        if (!keep_conns) {
            conns_close();
        }
    }
    conns_close();
    store_destroy(store);
}

static void file_check(const char *name, bool keep_conns,
                       enum store_legacy legacy)
{
    struct store_conf conf = STORE_CONF_DEFAULT;
    size_t i;
    size_t cut;

    conf.legacy = legacy;
    file_read(name);
    file_run(&conf, keep_conns, SIZE_MAX, 0);
    file_run(&conf, keep_conns, SIZE_MAX, SIZE_MAX);
    for (i = 0; i < n_cases; i++) {
        /* Long ones: every place near the ends, every 97th between. */
        for (cut = 1; cut < cases[i].longest_send; cut++) {
            if (cut < 128 || cut % 97 == 0 ||
                cases[i].longest_send - cut < 32) {
                file_run(&conf, keep_conns, i, cut);
            }
        }
    }
    cases_free();
}

static void calls_of_1_13_get_their_answers(void **state)
{
    (void)state;
    file_check("a_ops", true, STORE_LEGACY_1_13);
}

/* Without being told, too: a client of 1.13 cannot watch keys. */
static void calls_of_1_13_are_known_from_those_of_2_1(void **state)
{
    (void)state;
    file_check("a_ops", true, STORE_LEGACY_AUTO);
}

static void raw_bytes_of_1_13_get_their_answers(void **state)
{
    (void)state;
    file_check("a_raw", false, STORE_LEGACY_1_13);
}

static void calls_of_2_1_get_their_answers(void **state)
{
    (void)state;
    file_check("c_ops", true, STORE_LEGACY_2_1);
}

static void calls_of_2_1_are_known_from_those_of_1_13(void **state)
{
    (void)state;
    file_check("c_ops", true, STORE_LEGACY_AUTO);
}

static void raw_bytes_of_2_1_get_their_answers(void **state)
{
    (void)state;
    file_check("c_raw", false, STORE_LEGACY_2_1);
}

static void several_connections_of_2_1_get_their_answers(void **state)
{
    (void)state;
    file_check("c_scenarios", false, STORE_LEGACY_AUTO);
}

static void calls_of_2_13_get_their_answers(void **state)
{
    (void)state;
    file_check("d_ops", true, STORE_LEGACY_AUTO);
}

static void raw_bytes_of_2_13_get_their_answers(void **state)
{
    (void)state;
    file_check("d_raw", false, STORE_LEGACY_AUTO);
}

static void several_connections_of_2_13_get_their_answers(void **state)
{
    (void)state;
    file_check("d_scenarios", false, STORE_LEGACY_AUTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_1_13_get_their_answers),
        cmocka_unit_test(calls_of_1_13_are_known_from_those_of_2_1),
        cmocka_unit_test(raw_bytes_of_1_13_get_their_answers),
        cmocka_unit_test(calls_of_2_1_get_their_answers),
        cmocka_unit_test(calls_of_2_1_are_known_from_those_of_1_13),
        cmocka_unit_test(raw_bytes_of_2_1_get_their_answers),
        cmocka_unit_test(several_connections_of_2_1_get_their_answers),
        cmocka_unit_test(calls_of_2_13_get_their_answers),
        cmocka_unit_test(raw_bytes_of_2_13_get_their_answers),
        cmocka_unit_test(several_connections_of_2_13_get_their_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
