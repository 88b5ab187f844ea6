/*
 * Connections between agents on a loop: the two ends of one, strangers,
 * silence, a peer that does not read, the door they come in by, and look-ups.
 */
#include "tests/unit/listening.h"
#include "launcher/agent_door.h"
#include "launcher/agent_link.h"
#include "launcher/lookup.h"
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* One end, and what it has heard. */
struct end {
    struct agent_link link;
    unsigned n_ready;
    unsigned n_messages;
    unsigned n_ended;
    unsigned n_closed;
    uint64_t last_seq;
    char why[256];
    unsigned stop_after; /* messages; 0: never */
    bool finish;         /* instead of stop */
};

struct fixture {
    uv_loop_t loop;
    struct agent_link_buffer buffer;
    struct end a; /* connects */
    struct end b; /* is connected to */
};

static struct fixture fixture;

static void on_ready(struct agent_link *link, void *arg)
{
    struct end *end = arg;

    (void)link;
    end->n_ready++;
}

static void on_message(struct agent_link *link, const struct agent_msg *msg,
                       void *arg)
{
    struct end *end = arg;

    end->n_messages++;
    end->last_seq = msg->seq;
    if (end->n_messages == end->stop_after) {
        if (end->finish) {
            agent_link_finish(link);
        } else {
            agent_link_stop(link);
        }
    }
}

static void on_ended(struct agent_link *link, const char *why, void *arg)
{
    struct end *end = arg;

    end->n_ended++;
    (void)snprintf(end->why, sizeof(end->why), "%s", why);
    agent_link_stop(link);
    agent_link_stop(link); /* twice is once */
}

static void on_closed(struct agent_link *link, void *arg)
{
    struct end *end = arg;

    (void)link;
    end->n_closed++;
}

static const struct agent_link_events events = {
    .ready = on_ready,
    .message = on_message,
    .ended = on_ended,
    .closed = on_closed,
};

static int setup(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    fixture = (struct fixture){ .a = { .n_ready = 0 } };
    return uv_loop_init(&fixture.loop);
}

static int teardown(void **state)
{
    (void)state;
    (void)uv_run(&fixture.loop, UV_RUN_DEFAULT);
    return uv_loop_close(&fixture.loop);
}

/* A connected pair of TCP sockets. */
static void tcp_pair(int fds[2])
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    uint16_t port;
    int listener;

    assert_int_equal(listen_one(NET_LOOPBACK, 0, &listener, &port, NULL), 0);
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        connect(fds[0], (struct sockaddr *)&address, sizeof(address)), 0);
    do {
        fds[1] = accept(listener, NULL, NULL);
    } while (fds[1] < 0 && errno == EAGAIN);
    assert_true(fds[1] >= 0);
    (void)close(listener);
}

static void adopt(struct end *end, int fd, const void *head, size_t len)
{
    assert_int_equal(agent_link_adopt(&end->link, &fixture.loop, fd, head, len,
                                      &fixture.buffer, &events, end),
                     0);
}

static void run_while(const unsigned *count, unsigned until)
{
    int i;

    for (i = 0; i < 100000 && *count < until; i++) {
        (void)uv_run(&fixture.loop, UV_RUN_ONCE);
    }
    assert_true(*count >= until);
}

static void two_ends_talk_and_one_leaves(void **state)
{
    const struct agent_msg msg = { .type = AGENT_HEARTBEAT, .seq = 7 };
    struct sockaddr_in address = { .sin_family = AF_INET };
    uint16_t port;
    int listener;
    int fd;
    int i;

    (void)state;
    assert_int_equal(listen_one(NET_LOOPBACK, 0, &listener, &port, NULL), 0);
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(agent_link_connect(&fixture.a.link, &fixture.loop,
                                        (struct sockaddr *)&address,
                                        &fixture.buffer, &events, &fixture.a),
                     0);
    agent_link_send(&fixture.a.link, &msg); /* waits until it is ready */
    (void)uv_run(&fixture.loop, UV_RUN_ONCE);
    do {
        fd = accept(listener, NULL, NULL);
    } while (fd < 0 && errno == EAGAIN);
    adopt(&fixture.b, fd, "", 0);
    run_while(&fixture.a.n_ready, 1);
    for (i = 0; i < 100; i++) {
        agent_link_send(&fixture.b.link, &msg);
    }
    run_while(&fixture.a.n_messages, 100);
    run_while(&fixture.b.n_messages, 1);
    assert_int_equal(fixture.b.last_seq, 7);
    agent_link_finish(&fixture.b.link);
    run_while(&fixture.a.n_closed, 1);
    run_while(&fixture.b.n_closed, 1);
    assert_string_equal(fixture.a.why, "its connection was closed");
    assert_int_equal(fixture.b.n_ended, 0); /* it has left by itself */
    (void)close(listener);
}

static void a_link_may_be_stopped_from_its_callbacks(void **state)
{
    const struct agent_msg msg = { .type = AGENT_HEARTBEAT, .seq = 7 };
    struct buf bytes = { 0 };
    int fds[2];
    int i;

    (void)state;
    assert_int_equal(agent_preface_encode(&bytes), 0);
    for (i = 0; i < 5; i++) {
        assert_int_equal(agent_msg_encode(&bytes, &msg), 0);
    }
    tcp_pair(fds);
    fixture.a.stop_after = 2;
    adopt(&fixture.a, fds[0], bytes.data, bytes.len);
    run_while(&fixture.a.n_closed, 1);
    assert_int_equal(fixture.a.n_messages, 2);
    assert_int_equal(fixture.a.n_ended, 0);
    (void)close(fds[1]);
    buf_destroy(&bytes);
}

static void strangers_are_described(void **state)
{
    static const struct {
        const char *said;
        size_t len;
        const char *why;
    } cases[] = {
        { "HTTP/1.1 400 Bad Request\r\n", 26,
          "something else than flaunch answers there: it said \"HTTP/1.1 400 "
          "Bad Request\"" },
        { "\x16\x03\x01", 3,
          "something else than flaunch answers there: it said \"...\"" },
        { "FLCH\x09\0\0\0", 8,
          "its flaunch speaks version 9 of our protocol, and this one version "
          "1: use one release on all nodes" },
        { "FLCH\x01\0\0\0\0\0\0\0", 12, "it said what no flaunch says" },
        { "", 0,
          "it closed the connection without a word, as something else than "
          "flaunch would" },
        { "FLC", 3,
          "it closed the connection without a word, as something else than "
          "flaunch would" },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int fds[2];

        fixture.a = (struct end){ .n_ready = 0 };
        tcp_pair(fds);
        adopt(&fixture.a, fds[0], "", 0);
        assert_int_equal(write(fds[1], cases[i].said, cases[i].len),
                         cases[i].len);
        (void)shutdown(fds[1], SHUT_WR);
        run_while(&fixture.a.n_closed, 1);
        assert_string_equal(fixture.a.why, cases[i].why);
        assert_int_equal(fixture.a.n_ended, 1);
        (void)close(fds[1]);
    }
}

/* A process that is killed resets where it had left something unread. */
static void a_reset_is_told_as_an_end(void **state)
{
    const struct agent_msg msg = { .type = AGENT_HEARTBEAT, .seq = 7 };
    struct buf bytes = { 0 };
    int fds[2];

    (void)state;
    assert_int_equal(agent_preface_encode(&bytes), 0);
    assert_int_equal(agent_msg_encode(&bytes, &msg), 0);
    tcp_pair(fds);
    adopt(&fixture.a, fds[0], bytes.data, bytes.len);
    run_while(&fixture.a.n_messages, 1);
    agent_link_send(&fixture.a.link, &msg);
    assert_int_equal(recv(fds[1], (char[1]){ 0 }, 1, MSG_PEEK), 1);
    (void)close(fds[1]); /* with bytes unread: a reset */
    run_while(&fixture.a.n_closed, 1);
    assert_string_equal(fixture.a.why, "its connection was closed");
    buf_destroy(&bytes);
}

static void a_refused_connection_is_told(void **state)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    uint16_t port;
    int listener;

    (void)state;
    assert_int_equal(listen_one(NET_LOOPBACK, 0, &listener, &port, NULL), 0);
    (void)close(listener);
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(agent_link_connect(&fixture.a.link, &fixture.loop,
                                        (struct sockaddr *)&address,
                                        &fixture.buffer, &events, &fixture.a),
                     0);
    run_while(&fixture.a.n_closed, 1);
    assert_string_equal(fixture.a.why, "Connection refused");
}

static void who_does_not_read_is_given_up(void **state)
{
    static char text[AGENT_REPORT_MAX];
    const struct agent_msg msg = { .type = AGENT_END, .report = text };
    struct buf bytes = { 0 };
    int fds[2];
    int i;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    assert_int_equal(agent_preface_encode(&bytes), 0);
    tcp_pair(fds);
    adopt(&fixture.a, fds[0], bytes.data, bytes.len);
    for (i = 0; i < 1000 && fixture.a.n_ended == 0; i++) {
        agent_link_send(&fixture.a.link, &msg);
    }
    assert_string_equal(fixture.a.why, "it does not read what it is sent");
    assert_true((size_t)i * sizeof(text) < 64 * AGENT_LINK_UNSENT_MAX);
    run_while(&fixture.a.n_closed, 1);
    (void)close(fds[1]);
    buf_destroy(&bytes);
}

/* --- the door
 * ------------------------------------------------------------------ */

struct arrivals {
    unsigned n;
    unsigned n_closed;
};

static void somebody_came(int fd, const uint8_t *head, size_t len, void *arg)
{
    struct arrivals *arrivals = arg;

    assert_int_equal(len, 2);
    assert_memory_equal(head, "FL", 2);
    arrivals->n++;
    (void)close(fd);
}

static void door_closed(void *arg)
{
    struct arrivals *arrivals = arg;

    arrivals->n_closed++;
}

static void hand_over(void *arg)
{
    struct agent_door *door = arg;
    int i;

    for (i = 0; i < 100; i++) {
        int fd = dup(STDERR_FILENO);

        assert_int_equal(
            port_demux_hand_over(&door->demux, fd, (const uint8_t *)"FL", 2),
            0);
        (void)close(fd);
    }
}

static void who_comes_by_the_door_is_taken_in_the_loop(void **state)
{
    struct arrivals arrivals = { 0 };
    struct agent_door door;
    uv_thread_t thread;

    (void)state;
    assert_int_equal(agent_door_open(&door, &fixture.loop, somebody_came,
                                     door_closed, &arrivals),
                     0);
    assert_int_equal(uv_thread_create(&thread, hand_over, &door), 0);
    run_while(&arrivals.n, 100);
    (void)uv_thread_join(&thread);
    hand_over(&door); /* these come too late */
    agent_door_close(&door);
    agent_door_close(&door);
    run_while(&arrivals.n_closed, 1);
    assert_int_equal(arrivals.n, 100);
}

/* --- look-ups
 * -------------------------------------------------------------------- */

struct answer {
    unsigned n;
    bool found;
    char text[sizeof(((struct err *)NULL)->text)];
};

static void looked_up(struct addrinfo *list, const struct err *err, void *arg)
{
    struct answer *answer = arg;

    answer->n++;
    answer->found = list != NULL;
    if (list != NULL) {
        assert_true(net_is_ours(list->ai_addr));
        freeaddrinfo(list);
    } else {
        (void)snprintf(answer->text, sizeof(answer->text), "%s", err->text);
    }
}

static void names_are_looked_up_on_a_thread(void **state)
{
    struct answer answer = { 0 };
    struct lookup *lookup;

    (void)state;
    assert_int_equal(lookup_start(&fixture.loop, "127.0.0.1", 1, looked_up,
                                  &answer, &lookup, NULL),
                     0);
    run_while(&answer.n, 1);
    assert_true(answer.found);
    assert_int_equal(lookup_start(&fixture.loop, "no-such-name.invalid", 1,
                                  looked_up, &answer, &lookup, NULL),
                     0);
    run_while(&answer.n, 2);
    assert_false(answer.found);
    assert_non_null(strstr(answer.text, "cannot look up no-such-name.invalid"));
}

static void a_look_up_that_is_stopped_says_nothing(void **state)
{
    struct answer answer = { 0 };
    struct lookup *lookup;
    int i;

    (void)state;
    for (i = 0; i < 20; i++) {
        assert_int_equal(lookup_start(&fixture.loop, "localhost", 1, looked_up,
                                      &answer, &lookup, NULL),
                         0);
        lookup_stop(lookup);
    }
    lookup_stop(NULL);
    (void)uv_run(&fixture.loop, UV_RUN_DEFAULT);
    assert_int_equal(answer.n, 0);
}

#define LOOP_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOP_TEST(two_ends_talk_and_one_leaves),
        LOOP_TEST(a_link_may_be_stopped_from_its_callbacks),
        LOOP_TEST(strangers_are_described),
        LOOP_TEST(a_reset_is_told_as_an_end),
        LOOP_TEST(a_refused_connection_is_told),
        LOOP_TEST(who_does_not_read_is_given_up),
        LOOP_TEST(who_comes_by_the_door_is_taken_in_the_loop),
        LOOP_TEST(names_are_looked_up_on_a_thread),
        LOOP_TEST(a_look_up_that_is_stopped_says_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
