/*
 * The store over real sockets, and libflaunch's client of it.
 */
#include "common/clock.h"
#include "common/store_proto.h"
#include "tests/unit/listening.h"
#include "tests/unit/served_store.h"
#include "tests/unit/unit.h"
#include "worker/store_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#define LONG_MS 60000

static struct store_client connected(const struct fixture *fixture)
{
    struct store_client client;
    struct err err;

    assert_int_equal(store_client_connect(&client, "127.0.0.1", fixture->port,
                                          clock_deadline(LONG_MS), &err),
                     0);
    return client;
}

static struct bytes text(const char *s)
{
    return (struct bytes){ .data = (const uint8_t *)s, .len = strlen(s) };
}

static void values_go_round(void **state)
{
    struct store_client a = connected(*state);
    struct store_client b = connected(*state);
    uint64_t deadline_ms = clock_deadline(LONG_MS);
    struct buf value;
    int64_t sum;
    bool exists;

    assert_int_equal(store_client_set(&a, "k", text("v1"), deadline_ms, NULL),
                     0);
    assert_int_equal(store_client_get(&b, "k", deadline_ms, &value, NULL), 0);
    assert_int_equal(value.len, 2);
    assert_memory_equal(value.data, "v1", 2);
    buf_destroy(&value);
    assert_int_equal(store_client_add(&a, "c", 5, deadline_ms, &sum, NULL), 0);
    assert_int_equal(store_client_add(&b, "c", -7, deadline_ms, &sum, NULL), 0);
    assert_int_equal(sum, -2);
    assert_int_equal(store_client_check(&a, "c", deadline_ms, &exists, NULL),
                     0);
    assert_true(exists);
    assert_int_equal(store_client_check(&a, "no", deadline_ms, &exists, NULL),
                     0);
    assert_false(exists);
    store_client_close(&a);
    store_client_close(&a);
    store_client_close(&b);
}

static void a_large_value_goes_round(void **state)
{
    struct store_client client = connected(*state);
    uint64_t deadline_ms = clock_deadline(LONG_MS);
    size_t len = 5 * 1024 * 1024;
    uint8_t *data = malloc(len);
    struct buf value;
    size_t i;

    assert_non_null(data);
    for (i = 0; i < len; i++) {
        data[i] = (uint8_t)(i * 31 >> 3);
    }
    assert_int_equal(store_client_set(&client, "big",
                                      (struct bytes){ data, len }, deadline_ms,
                                      NULL),
                     0);
    assert_int_equal(
        store_client_get(&client, "big", deadline_ms, &value, NULL), 0);
    assert_int_equal(value.len, len);
    assert_memory_equal(value.data, data, len);
    buf_destroy(&value);
    free(data);
    store_client_close(&client);
}

static void a_wait_that_times_out_leaves_the_connection_in_step(void **state)
{
    struct store_client client = connected(*state);
    uint64_t deadline_ms = clock_deadline(LONG_MS);
    struct err err;
    int64_t sum;
    int i;

    for (i = 0; i < 3; i++) {
        assert_int_equal(
            store_client_wait(&client, "never", clock_deadline(20), &err),
            -ETIMEDOUT);
        assert_non_null(strstr(err.text, "in vain for key never"));
        assert_int_equal(
            store_client_add(&client, "n", 1, deadline_ms, &sum, NULL), 0);
        assert_int_equal(sum, i + 1);
    }
    store_client_close(&client);
}

static void a_wait_for_many_names_only_what_is_missing(void **state)
{
    static const char *const keys[] = { "many/1", "many/2", "many/3" };
    struct store_client client = connected(*state);
    uint64_t deadline_ms = clock_deadline(LONG_MS);
    struct err err;

    assert_int_equal(
        store_client_set(&client, "many/2", text("x"), deadline_ms, NULL), 0);
    assert_int_equal(
        store_client_wait_all(&client, keys, 3, clock_deadline(20), &err),
        -ETIMEDOUT);
    assert_non_null(strstr(err.text, "in vain for keys many/1, many/3"));
    assert_int_equal(store_client_wait_all(&client, keys, 0, deadline_ms, &err),
                     -EINVAL);
    assert_int_equal(
        store_client_set(&client, "many/1", text("x"), deadline_ms, NULL), 0);
    assert_int_equal(
        store_client_set(&client, "many/3", text("x"), deadline_ms, NULL), 0);
    assert_int_equal(store_client_wait_all(&client, keys, 3, deadline_ms, &err),
                     0);
    store_client_close(&client);
}

struct late_set {
    const struct fixture *fixture;
    const char *key;
};

static void *set_later(void *arg)
{
    struct late_set *late = arg;
    struct store_client client = connected(late->fixture);

    clock_sleep_ms(50);
    assert_int_equal(store_client_set(&client, late->key, text("now"),
                                      clock_deadline(LONG_MS), NULL),
                     0);
    store_client_close(&client);
    return NULL;
}

static void a_get_waits_for_its_key(void **state)
{
    struct late_set late = { *state, "late" };
    struct store_client client = connected(*state);
    struct buf value;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, set_later, &late), 0);
    assert_int_equal(store_client_get(&client, "late", clock_deadline(LONG_MS),
                                      &value, NULL),
                     0);
    assert_memory_equal(value.data, "now", 3);
    buf_destroy(&value);
    assert_int_equal(pthread_join(thread, NULL), 0);
    store_client_close(&client);
}

static void a_closed_client_says_so(void **state)
{
    struct store_client client = connected(*state);
    struct err err;

    store_client_close(&client);
    assert_int_equal(store_client_set(&client, "k", text("v"),
                                      clock_deadline(LONG_MS), &err),
                     -ENOTCONN);
    assert_non_null(strstr(err.text, "not connected"));
}

static void a_store_that_ends_is_an_error_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct store_client client = connected(fixture);
    struct err err;
    int64_t sum;

    store_host_stop(fixture->host);
    fixture->host = NULL;
    assert_true(store_client_add(&client, "k", 1, clock_deadline(LONG_MS), &sum,
                                 &err) < 0);
    assert_int_equal(client.fd, -1);
    store_client_close(&client);
}

static void nobody_there_is_told_with_host_and_port(void **state)
{
    struct fixture *fixture = *state;
    struct store_client client;
    struct err err;

    store_host_stop(fixture->host);
    fixture->host = NULL;
    assert_int_equal(store_client_connect(&client, "127.0.0.1", fixture->port,
                                          clock_deadline(100), &err),
                     -ETIMEDOUT);
    assert_non_null(strstr(err.text, "store 127.0.0.1 port"));
    assert_non_null(strstr(err.text, "Connection refused"));
    store_client_close(&client);
}

/* A listener that accepts and never says a word. */
static void a_silent_peer_is_no_store(void **state)
{
    struct store_client client;
    struct err err;
    uint16_t port;
    int fd;

    (void)state;
    assert_int_equal(listen_one(NET_LOOPBACK, 0, &fd, &port, NULL), 0);
    assert_int_equal(store_client_connect(&client, "127.0.0.1", port,
                                          clock_deadline(200), &err),
                     -ETIMEDOUT);
    store_client_close(&client);
    (void)close(fd);
}

static int raw_connect(const struct fixture *fixture)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(fixture->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = { .tv_sec = LONG_MS / 1000 };

    assert_true(fd >= 0);
    assert_int_equal(
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)),
                     0);
    return fd;
}

static void a_half_closed_client_gets_its_answers(void **state)
{
    static const uint8_t request[] = {
        0, 0xce, 0xf7, 0x85, 0x3c, 13, 1, 2, 3, 4
    };
    uint8_t reply[8];
    int fd = raw_connect(*state);

    assert_int_equal(send(fd, request, sizeof(request), 0), sizeof(request));
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    assert_int_equal(recv(fd, reply, 4, MSG_WAITALL), 4);
    assert_memory_equal(reply, request + 6, 4);
    assert_int_equal(recv(fd, reply, sizeof(reply), 0), 0); /* then the end */
    (void)close(fd);
}

static void a_wrong_client_is_cut_off_and_others_go_on(void **state)
{
    struct store_client client = connected(*state);
    int fd = raw_connect(*state);
    char byte;
    int64_t sum;

    assert_int_equal(send(fd, "GET / HTTP/1.1\r\n", 16, 0), 16);
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    (void)close(fd);
    assert_int_equal(
        store_client_add(&client, "k", 1, clock_deadline(LONG_MS), &sum, NULL),
        0);
    store_client_close(&client);
}

static void a_reader_that_sleeps_does_not_stop_others(void **state)
{
    struct fixture *fixture = *state;
    struct store_client client = connected(fixture);
    uint64_t deadline_ms = clock_deadline(LONG_MS);
    size_t len = 4 * 1024 * 1024;
    uint8_t *data = calloc(1, len);
    uint8_t request[5 + 10 * 11];
    uint8_t *p = request;
    int fd = raw_connect(fixture);
    int64_t sum;
    int i;

    assert_non_null(data);
    assert_int_equal(store_client_set(&client, "b", (struct bytes){ data, len },
                                      deadline_ms, NULL),
                     0);
    assert_int_equal(store_client_add(&client, "k", 1, deadline_ms, &sum, NULL),
                     0);
    memcpy(p, "\0\xce\xf7\x85\x3c", 5);
    p += 5;
    for (i = 0; i < 10; i++) {
        *p++ = (uint8_t)store_opcode(STORE_DIALECT_D, STORE_OP_GET);
        le_put_u64(p, 2);
        memcpy(p + 8, "/b", 2);
        p += 10;
    }
    assert_int_equal(send(fd, request, (size_t)(p - request), 0), p - request);
    for (i = 0; i < 100; i++) {
        assert_int_equal(
            store_client_add(&client, "k", 1, deadline_ms, &sum, NULL), 0);
    }
    /* And what it was owed is there when it wakes up. */
    for (i = 0; i < 10; i++) {
        assert_int_equal(recv(fd, data, 8, MSG_WAITALL), 8);
        assert_true(le_u64(data) == len);
        assert_int_equal(recv(fd, data, len, MSG_WAITALL), (ssize_t)len);
    }
    (void)close(fd);
    free(data);
    store_client_close(&client);
}

static void a_port_in_use_is_told(void **state)
{
    struct fixture *fixture = *state;
    struct err err;
    uint16_t port;
    int fd;

    assert_int_equal(listen_one(NET_LOOPBACK, fixture->port, &fd, &port, &err),
                     -EADDRINUSE);
}

/* Whichever queue a client is put into, it is served. */
static void every_socket_of_a_port_is_served(void **state)
{
    const struct net_where where = { .scope = NET_LOOPBACK };
    struct store_setup several = { .conf = STORE_CONF_DEFAULT };
    struct store_client clients[64];
    struct store_host *host;
    int64_t sum;
    size_t i;

    (void)state;
    assert_int_equal(net_listeners_open(&where, 8, &several.listeners, NULL),
                     0);
    assert_int_equal(store_host_start(&several, &host, NULL), 0);
    for (i = 0; i < 64; i++) {
        assert_int_equal(store_client_connect(&clients[i], "127.0.0.1",
                                              several.listeners.port,
                                              clock_deadline(LONG_MS), NULL),
                         0);
        assert_int_equal(store_client_add(&clients[i], "n", 1,
                                          clock_deadline(LONG_MS), &sum, NULL),
                         0);
        assert_int_equal(sum, i + 1);
    }
    for (i = 0; i < 64; i++) {
        store_client_close(&clients[i]);
    }
    store_host_stop(host);
}

static void all_addresses_take_ipv4_and_ipv6(void **state)
{
    struct store_host *host;
    struct store_client client;
    uint16_t port;

    (void)state;
    assert_int_equal(serve_store(NET_ALL, NULL, NULL, &host, &port), 0);
    assert_int_equal(store_client_connect(&client, "127.0.0.1", port,
                                          clock_deadline(LONG_MS), NULL),
                     0);
    store_client_close(&client);
    assert_int_equal(store_client_connect(&client, "localhost", port,
                                          clock_deadline(LONG_MS), NULL),
                     0);
    store_client_close(&client);
    store_host_stop(host);
}

/* What a demux was handed; the store's thread writes, this one reads. */
struct taken {
    uv_sem_t sem;
    int fd;
    uint8_t head[16];
    size_t len;
};

static void agent_taken(int fd, const uint8_t *head, size_t len, void *arg)
{
    struct taken *taken = arg;

    taken->fd = fd;
    taken->len = len < sizeof(taken->head) ? len : sizeof(taken->head);
    memcpy(taken->head, head, taken->len);
    uv_sem_post(&taken->sem);
}

static void connect_to(uint16_t port, int *fd_out)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port) };

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *fd_out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        connect(*fd_out, (struct sockaddr *)&address, sizeof(address)), 0);
}

/* One port: agents are handed over, and clients are served meanwhile. */
static void an_agents_connection_is_handed_over(void **state)
{
    static const uint8_t preface[] = { 'F', 'L', 'C', 'H', 1, 0, 0, 0 };
    struct taken taken = { .fd = -1 };
    const struct port_demux demux = { .take = agent_taken, .arg = &taken };
    struct store_client client = { .fd = -1 };
    struct store_host *host;
    char answer[3] = "";
    uint16_t port;
    int fd;

    (void)state;
    assert_int_equal(uv_sem_init(&taken.sem, 0), 0);
    assert_int_equal(serve_store(NET_LOOPBACK, NULL, &demux, &host, &port), 0);
    connect_to(port, &fd);
    assert_int_equal(write(fd, preface, sizeof(preface)), sizeof(preface));
    uv_sem_wait(&taken.sem);
    assert_int_equal(taken.len, sizeof(preface));
    assert_memory_equal(taken.head, preface, sizeof(preface));
    assert_int_equal(store_client_connect(&client, "127.0.0.1", port,
                                          clock_deadline(LONG_MS), NULL),
                     0);
    store_client_close(&client);
    store_host_stop(host);
    /* It lives on without the store. */
    assert_int_equal(send(taken.fd, "ok", 2, 0), 2);
    assert_int_equal(read(fd, answer, 2), 2);
    assert_string_equal(answer, "ok");
    (void)close(taken.fd);
    (void)close(fd);
    uv_sem_destroy(&taken.sem);
}

/* On one node there are no agents to take: it is a client that errs. */
static void without_a_demux_an_agent_is_cut_off(void **state)
{
    struct fixture *fixture = *state;
    char byte;
    int fd;

    connect_to(fixture->port, &fd);
    assert_int_equal(write(fd, "FLCH\1\0\0\0", 8), 8);
    assert_true(read(fd, &byte, 1) <= 0);
    (void)close(fd);
}

static void a_name_without_address_is_told(void **state)
{
    struct store_client client;
    struct err err;

    (void)state;
    assert_true(store_client_connect(&client, "no.such.host.invalid", 1,
                                     clock_deadline(300), &err) < 0);
    assert_non_null(strstr(err.text, "no.such.host.invalid"));
    store_client_close(&client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_go_round),
        TEST(a_large_value_goes_round),
        TEST(a_wait_that_times_out_leaves_the_connection_in_step),
        TEST(a_wait_for_many_names_only_what_is_missing),
        TEST(a_get_waits_for_its_key),
        TEST(a_closed_client_says_so),
        TEST(a_store_that_ends_is_an_error_at_once),
        TEST(nobody_there_is_told_with_host_and_port),
        cmocka_unit_test(a_silent_peer_is_no_store),
        TEST(a_half_closed_client_gets_its_answers),
        TEST(a_wrong_client_is_cut_off_and_others_go_on),
        TEST(a_reader_that_sleeps_does_not_stop_others),
        TEST(a_port_in_use_is_told),
        cmocka_unit_test(every_socket_of_a_port_is_served),
        cmocka_unit_test(all_addresses_take_ipv4_and_ipv6),
        cmocka_unit_test(an_agents_connection_is_handed_over),
        TEST(without_a_demux_an_agent_is_cut_off),
        cmocka_unit_test(a_name_without_address_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
