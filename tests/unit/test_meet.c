/*
 * Foreign channels: their codecs, and what peers that lie, stall or vanish do.
 */
#include "common/clock.h"
#include "tests/unit/unit.h"
#include "worker/http_kv.h"
#include "worker/job_address.h"
#include "worker/meet.h"
#include "worker/pmi_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONG_MS 60000

static void pmi_lines_are_read_in_any_order(void **state)
{
    char value[32];
    int number;

    (void)state;
    assert_true(pmi_field("cmd=get_result rc=0 msg=success value=a=b x=1",
                          "value", value, sizeof(value)));
    assert_string_equal(value, "a=b");
    assert_true(pmi_field("value= cmd=x", "cmd", value, sizeof(value)));
    assert_false(pmi_field("cmd=x rvalue=1", "value", value, sizeof(value)));
    assert_false(pmi_field("value=123456", "value", value, 4));
    assert_true(pmi_number("cmd=set size=12", "size", &number));
    assert_int_equal(number, 12);
    assert_false(pmi_number("cmd=set size=-1", "size", &number));
    assert_int_equal(pmi_answer("cmd=a rc=0", "a"), 0);
    assert_int_equal(pmi_answer("rc=0 cmd=a", "a"), 0);
    assert_int_equal(pmi_answer("cmd=a", "a"), 0);
    assert_int_equal(pmi_answer("cmd=a rc=-1 msg=no", "a"), -ENOENT);
    assert_int_equal(pmi_answer("cmd=b rc=0", "a"), -EPROTO);
    assert_int_equal(pmi_answer("", "a"), -EPROTO);
}

static void process_mappings_give_the_local_place(void **state)
{
    static const struct {
        const char *text;
        int rank;
        int rc;
        int local_rank;
        int local_world_size;
    } rows[] = {
        { "(vector,(0,1,1))", 0, 0, 0, 1 },
        { "(vector,(0,2,2))", 0, 0, 0, 2 },
        { "(vector,(0,2,2))", 3, 0, 1, 2 },
        { "(vector,(0,2,1),(0,2,1))", 2, 0, 1, 2 },
        { "(vector,(0,2,1),(0,2,1))", 3, 0, 1, 2 },
        { "(vector,(0,1,3),(1,1,1))", 3, 0, 0, 1 },
        { "(vector,(0,2,2))", 4, -ENOENT, 0, 0 },
        { "(vector)", 0, -ENOENT, 0, 0 },
        { "(vector,(0,0,2))", 0, -ENOENT, 0, 0 },
        { "(vector,(0,2,x))", 0, -ENOENT, 0, 0 },
        { "(vector,(0,65535,9999999),(0,65535,9999999))", 1, -EPROTO, 0, 0 },
        { "", 0, -EPROTO, 0, 0 },
        { "(vector,(0,2,2))", -1, -EPROTO, 0, 0 },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int local_rank = 0;
        int local_world_size = 0;

        assert_int_equal(pmi_mapping_read(rows[i].text, rows[i].rank,
                                          &local_rank, &local_world_size),
                         rows[i].rc);
        assert_int_equal(local_rank, rows[i].local_rank);
        assert_int_equal(local_world_size, rows[i].local_world_size);
    }
}

/* --- a PMI server that says what it is told ----------------------------- */

struct server {
    int fd;
    const char *const *answers; /* one for each line; NULL: no more */
    char seen[8][512];
    int n_seen;
};

static void *server_run(void *arg)
{
    struct server *server = arg;
    int i;

    for (i = 0; server->answers[i] != NULL; i++) {
        size_t len = 0;
        char *line = server->seen[i];

        while (len < 511 && read(server->fd, line + len, 1) == 1 &&
               line[len] != '\n') {
            len++;
        }
        line[len] = '\0';
        server->n_seen++;
        if (send(server->fd, server->answers[i], strlen(server->answers[i]),
                 MSG_NOSIGNAL) < 0) {
            break;
        }
    }
    (void)close(server->fd);
    return NULL;
}

/* Open over PMI_FD with a server of these answers, put and get. */
static int pmi_talk(const char *const *answers, struct detected *detected,
                    char value[64], struct server *server, struct err *err)
{
    uint64_t deadline_ms = clock_deadline(LONG_MS);
    pthread_t thread;
    struct meet meet;
    char text[16];
    int fds[2];
    int rc;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    *server = (struct server){ .fd = fds[1], .answers = answers };
    assert_int_equal(pthread_create(&thread, NULL, server_run, server), 0);
    (void)snprintf(text, sizeof(text), "%d", fds[0]);
    assert_int_equal(setenv("PMI_FD", text, 1), 0);
    rc = meet_open(&meet, detected, deadline_ms, err);
    if (rc == 0) {
        rc = meet.ops->put(&meet, "k", "v", deadline_ms, err);
    }
    if (rc == 0) {
        rc = meet.ops->fence(&meet, deadline_ms, err);
    }
    if (rc == 0) {
        rc = meet.ops->get(&meet, "k", value, 64, deadline_ms, err);
    }
    meet_close(&meet, deadline_ms);
    assert_int_equal(unsetenv("PMI_FD"), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return rc;
}

static void pmi_is_spoken_as_its_servers_want_it(void **state)
{
    static const char *const answers[] = {
        "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n",
        "cmd=my_kvsname kvsname=27.0\n",
        "cmd=get_result rc=0 value=(vector,(0,2,2))\n",
        "cmd=put_result rc=0\n",
        "cmd=barrier_out rc=0\n",
        "cmd=get_result rc=0 msg=success value=v7\n",
        "cmd=finalize_ack rc=0\n",
        NULL
    };
    struct detected detected = {
        .channel = CHANNEL_PMI, .rank = 3, .world_size = 4, .local_rank = -1
    };
    struct server server;
    char value[64];
    struct err err;

    (void)state;
    assert_int_equal(pmi_talk(answers, &detected, value, &server, &err), 0);
    assert_string_equal(value, "v7");
    assert_int_equal(detected.local_rank, 1);
    assert_int_equal(detected.local_world_size, 2);
    assert_int_equal(server.n_seen, 7);
    assert_string_equal(server.seen[0],
                        "cmd=init pmi_version=1 pmi_subversion=1");
    assert_string_equal(server.seen[3], "cmd=put kvsname=27.0 key=k value=v");
    assert_string_equal(server.seen[6], "cmd=finalize");
}

static void pmi_servers_that_fail_are_told(void **state)
{
    static const char *const wrong[] = { "HTTP/1.0 400\n", NULL };
    static const char *const refused[] = { "cmd=response_to_init rc=5\n",
                                           "cmd=finalize_ack\n", NULL };
    static const char *const gone[] = { "cmd=response_to_init rc=0\n",
                                        "cmd=my_kvsname kvsname=k\n",
                                        "cmd=put_result rc=0\n", NULL };
    struct detected detected = { .channel = CHANNEL_PMI,
                                 .rank = 0,
                                 .world_size = 2,
                                 .local_rank = 0,
                                 .local_world_size = 2 };
    struct server server;
    char value[64];
    struct err err;

    (void)state;
    assert_int_equal(pmi_talk(wrong, &detected, value, &server, &err), -EPROTO);
    assert_non_null(strstr(err.text, "HTTP/1.0 400"));
    assert_int_equal(pmi_talk(refused, &detected, value, &server, &err),
                     -ENOENT);
    assert_non_null(strstr(err.text, "rc=5"));
    assert_true(pmi_talk(gone, &detected, value, &server, &err) < 0);
    assert_non_null(strstr(err.text, "barrier_in"));
}

static void a_silent_pmi_server_costs_no_more_than_the_deadline(void **state)
{
    struct detected detected = { .channel = CHANNEL_PMI, .world_size = 2 };
    uint64_t started_ms = clock_ms();
    struct meet meet;
    struct err err;
    char text[16];
    int fds[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    (void)snprintf(text, sizeof(text), "%d", fds[0]);
    assert_int_equal(setenv("PMI_FD", text, 1), 0);
    assert_int_equal(meet_open(&meet, &detected, clock_deadline(50), &err),
                     -ETIMEDOUT);
    assert_int_equal(unsetenv("PMI_FD"), 0);
    assert_true(clock_ms() - started_ms < LONG_MS);
    (void)close(fds[1]);
}

/* --- Horovod's HTTP ----------------------------------------------------- */

static int reply(const char *text, size_t len, bool ended, struct bytes *body)
{
    return http_kv_reply((struct bytes){ (const uint8_t *)text, len }, ended,
                         body);
}

static void http_answers_are_read_whole_and_split(void **state)
{
    static const char good[] = "HTTP/1.0 200 OK\r\nServer: BaseHTTP\r\n"
                               "Content-Length: 5\r\n\r\nhello";
    static const char bare[] = "HTTP/1.0 200 OK\r\n\r\nhel";
    struct bytes body = { 0 };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(good) - 1; i++) {
        assert_int_equal(reply(good, i, false, &body), -EAGAIN);
        assert_int_equal(reply(good, i, true, &body), -EPROTO);
    }
    assert_int_equal(reply(good, sizeof(good) - 1, false, &body), 200);
    assert_int_equal(body.len, 5);
    assert_memory_equal(body.data, "hello", 5);
    assert_int_equal(reply(bare, sizeof(bare) - 1, false, &body), -EAGAIN);
    assert_int_equal(reply(bare, sizeof(bare) - 1, true, &body), 200);
    assert_int_equal(body.len, 3);
}

static void broken_http_answers_are_refused(void **state)
{
    static const char *const rows[] = {
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/1.0 OK\r\n\r\n",
        "HTTP/1.0 2\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Length: x\r\n\r\n",
    };
    struct bytes body;
    char long_head[2000];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(reply(rows[i], strlen(rows[i]), true, &body), -EPROTO);
    }
    memset(long_head, 'x', sizeof(long_head));
    assert_int_equal(reply(long_head, sizeof(long_head), false, &body),
                     -EPROTO);
    assert_int_equal(reply("HTTP/1.0 404 Not Found\r\n\r\n", 26, true, &body),
                     404);
}

/* --- the address -------------------------------------------------------- */

static void addresses_go_round_and_cut_ones_are_refused(void **state)
{
    struct job_address address = { .token = "0123456789abcdef",
                                   .port = 4567,
                                   .n_hosts = 2,
                                   .hosts = { "192.0.2.7", "fd00::2" } };
    struct job_address read;
    char text[MEET_VALUE_MAX];
    size_t len;
    size_t i;

    (void)state;
    assert_int_equal(job_address_encode(&address, text, sizeof(text)), 0);
    assert_string_equal(text,
                        "flaunch1,0123456789abcdef,4567,192.0.2.7,fd00::2,.");
    assert_int_equal(strcspn(text, " ;"), strlen(text));
    assert_int_equal(job_address_decode(text, &read), 0);
    assert_memory_equal(&read, &address, sizeof(read));
    len = strlen(text);
    for (i = 0; i < len; i++) {
        char cut[MEET_VALUE_MAX];

        (void)snprintf(cut, sizeof(cut), "%.*s", (int)i, text);
        assert_int_equal(job_address_decode(cut, &read), -EPROTO);
    }
    assert_int_equal(job_address_encode(&address, text, len), -EMSGSIZE);
    assert_int_equal(job_address_decode("flaunch1,t,0,h,.", &read), -EPROTO);
    assert_int_equal(job_address_decode("flaunch1,t,1,.", &read), -EPROTO);
    assert_int_equal(job_address_decode("flaunch2,t,1,h,.", &read), -EPROTO);
    assert_int_equal(job_address_decode("flaunch1,t,1,h,.,x", &read), -EPROTO);
}

static void own_addresses_fit_into_the_narrowest_channel(void **state)
{
    struct job_address address = { .port = 65535 };
    char text[MEET_VALUE_MAX];

    (void)state;
    memset(address.token, 'f', 32);
    job_address_find(&address, true);
    assert_int_equal(address.n_hosts, 1);
    assert_string_equal(address.hosts[0], "127.0.0.1");
    job_address_find(&address, false);
    assert_true(address.n_hosts >= 1);
    assert_string_equal(address.hosts[address.n_hosts - 1], "127.0.0.1");
    assert_int_equal(job_address_encode(&address, text, sizeof(text)), 0);
}

/* --- files -------------------------------------------------------------- */

struct place {
    char directory[32];
    struct detected detected;
};

static int place_make(void **state)
{
    struct place *place = calloc(1, sizeof(*place));

    if (place == NULL) {
        return -1;
    }
    (void)snprintf(place->directory, sizeof(place->directory),
                   "/tmp/flaunch-unit-XXXXXX");
    if (mkdtemp(place->directory) == NULL) {
        return -1;
    }
    place->detected =
        (struct detected){ .channel = CHANNEL_FILE, .world_size = 2 };
    (void)snprintf(place->detected.path, sizeof(place->detected.path), "%s/f",
                   place->directory);
    *state = place;
    return 0;
}

static int place_remove(void **state)
{
    struct place *place = *state;

    (void)unlink(place->detected.path);
    (void)rmdir(place->directory);
    free(place);
    return 0;
}

static void file_write(const char *path, const void *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), len);
    assert_int_equal(close(fd), 0);
}

static void file_open_two(struct place *place, struct meet *a, struct meet *b)
{
    uint64_t deadline_ms = clock_deadline(LONG_MS);

    assert_int_equal(meet_open(a, &place->detected, deadline_ms, NULL), 0);
    assert_int_equal(meet_open(b, &place->detected, deadline_ms, NULL), 0);
}

static void the_last_one_removes_the_file(void **state)
{
    struct place *place = *state;
    uint64_t deadline_ms = clock_deadline(LONG_MS);
    struct meet a;
    struct meet b;
    char value[64];

    file_open_two(place, &a, &b);
    assert_int_equal(a.ops->put(&a, "k", "one", deadline_ms, NULL), 0);
    assert_int_equal(a.ops->put(&a, "k", "two", deadline_ms, NULL), 0);
    assert_int_equal(
        b.ops->get(&b, "k", value, sizeof(value), deadline_ms, NULL), 0);
    assert_string_equal(value, "two");
    meet_close(&a, deadline_ms);
    assert_int_equal(access(place->detected.path, F_OK), 0);
    meet_close(&b, deadline_ms);
    assert_int_equal(access(place->detected.path, F_OK), -1);
}

/* Captured from PyTorch 2.13: opened, k set, c added to, k deleted. */
static void pytorchs_own_bytes_are_read(void **state)
{
    static const char bytes[] = "\x09\0\0\0refcount/\1\0\0\0"
                                "1\2\0\0\0/k\3\0\0\0val\2\0\0\0/c\1\0\0\0"
                                "5\3\0\0\0-/k\0\0\0";
    struct place *place = *state;
    struct err err;
    struct meet a;
    char value[64];

    /* The last zero is the literal's own end. */
    file_write(place->detected.path, bytes, sizeof(bytes));
    assert_int_equal(
        meet_open(&a, &place->detected, clock_deadline(LONG_MS), NULL), 0);
    assert_int_equal(a.ops->get(&a, "c", value, sizeof(value),
                                clock_deadline(LONG_MS), NULL),
                     0);
    assert_string_equal(value, "5");
    assert_int_equal(
        a.ops->get(&a, "k", value, sizeof(value), clock_deadline(20), &err),
        -ETIMEDOUT);
    meet_close(&a, clock_deadline(LONG_MS));
    /* The one that PyTorch left open still counts. */
    assert_int_equal(access(place->detected.path, F_OK), 0);
}

static void other_files_are_refused(void **state)
{
    struct place *place = *state;
    struct detected nowhere = place->detected;
    struct err err;
    struct meet a;

    file_write(place->detected.path, "not a store at all", 18);
    assert_int_equal(
        meet_open(&a, &place->detected, clock_deadline(LONG_MS), &err),
        -EPROTO);
    assert_non_null(strstr(err.text, "is no FileStore"));
    (void)snprintf(nowhere.path, sizeof(nowhere.path), "%s/no/f",
                   place->directory);
    assert_int_equal(meet_open(&a, &nowhere, clock_deadline(LONG_MS), &err),
                     -ENOENT);
    (void)snprintf(nowhere.path, sizeof(nowhere.path), "%s", place->directory);
    assert_true(meet_open(&a, &nowhere, clock_deadline(LONG_MS), &err) < 0);
}

/* Only root can make one. */
static void another_users_file_is_refused(void **state)
{
    struct place *place = *state;
    struct err err;
    struct meet a;

    if (geteuid() != 0) {
        skip();
    }
    file_write(place->detected.path, "", 0);
    assert_int_equal(chown(place->detected.path, 65534, 65534), 0);
    assert_int_equal(
        meet_open(&a, &place->detected, clock_deadline(LONG_MS), &err), -EPERM);
    assert_non_null(strstr(err.text, "belongs to another user (uid 65534)"));
}

#define FILE_TEST(name)                                                        \
    cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pmi_lines_are_read_in_any_order),
        cmocka_unit_test(process_mappings_give_the_local_place),
        cmocka_unit_test(pmi_is_spoken_as_its_servers_want_it),
        cmocka_unit_test(pmi_servers_that_fail_are_told),
        cmocka_unit_test(a_silent_pmi_server_costs_no_more_than_the_deadline),
        cmocka_unit_test(http_answers_are_read_whole_and_split),
        cmocka_unit_test(broken_http_answers_are_refused),
        cmocka_unit_test(addresses_go_round_and_cut_ones_are_refused),
        cmocka_unit_test(own_addresses_fit_into_the_narrowest_channel),
        FILE_TEST(the_last_one_removes_the_file),
        FILE_TEST(pytorchs_own_bytes_are_read),
        FILE_TEST(other_files_are_refused),
        FILE_TEST(another_users_file_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
