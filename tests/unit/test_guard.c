/*
 * The guard's codec, its pair, its job and its reaper.
 */
#include "common/clock.h"
#include "launcher/guard.h"
#include "launcher/guard_job.h"
#include "launcher/guard_pair.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void messages_go_round(void **state)
{
    static const struct guard_msg messages[] = {
        { .type = GUARD_SPAWN, .count = 64, .size = 1ULL << 33 },
        { .type = GUARD_SIGNAL, .signo = 10 },
        { .type = GUARD_STOP, .signo = 15, .grace_ms = 30000 },
        { .type = GUARD_DRAINED },
        { .type = GUARD_SPAWNED,
          .worker = 3,
          .pid = 99,
          .at_ns = 1,
          .count = 2 },
        { .type = GUARD_FAILED, .worker = 3, .step = 2, .error = 13 },
        { .type = GUARD_EXITED,
          .worker = 1,
          .pid = 2,
          .status = 256,
          .at_ns = UINT64_MAX,
          .peak_kib = 7 },
        { .type = GUARD_LEFT,
          .pid = 5,
          .state = 'D',
          .name = "python",
          .wchan = "nfs_wait" },
        { .type = GUARD_LEASE, .at_ns = 77 },
        { .type = GUARD_FENCED },
        { .type = GUARD_EMPTY },
    };
    struct buf out = { 0 };
    struct reader reader;
    struct guard_msg msg;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        assert_int_equal(guard_msg_encode(&out, &messages[i]), 0);
    }
    reader = (struct reader){ .data = out.data, .len = out.len };
    for (i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        assert_int_equal(guard_msg_decode(&reader, &msg), 1);
        assert_memory_equal(&msg, &messages[i], sizeof(msg));
    }
    assert_int_equal(guard_msg_decode(&reader, &msg), 0);
    for (i = 1; i < out.len; i++) { /* no prefix ends in the middle of one */
        struct buf copy = { 0 };
        int rc;

        assert_int_equal(buf_append(&copy, out.data, i), 0);
        reader = (struct reader){ .data = copy.data, .len = copy.len };
        do {
            rc = guard_msg_decode(&reader, &msg);
        } while (rc > 0);
        assert_true(rc == 0 || rc == -EPROTO);
        buf_destroy(&copy);
    }
    buf_destroy(&out);
}

static void packets_hold_whole_messages(void **state)
{
    struct guard_msg msg = { .type = GUARD_LEFT };
    struct buf out = { 0 };
    struct guard_msg last;
    size_t len;

    (void)state;
    while (out.len < 3 * GUARD_PACKET_MAX) {
        assert_int_equal(guard_msg_encode(&out, &msg), 0);
    }
    while (out.len > 0) {
        struct reader reader;
        int rc;

        len = guard_packet_len(&out, &last);
        assert_int_equal(last.type, GUARD_LEFT);
        assert_in_range(len, 1, GUARD_PACKET_MAX);
        reader = (struct reader){ .data = out.data, .len = len };
        while ((rc = guard_msg_decode(&reader, &msg)) > 0) {
        }
        assert_int_equal(rc, 0);
        buf_consume(&out, len);
    }
    buf_destroy(&out);
}

static char *const no_strings[] = { NULL };

/* A plan of n workers that run argv under base environment PATH. */
static struct guard_plan plan_of(char **argv, uint32_t n)
{
    static char path_env[] = "PATH=/bin:/usr/bin";
    static char *base[] = { path_env, NULL };
    static char **shared[1];
    struct guard_plan plan = { .stdin_worker = GUARD_STDIN_NONE,
                               .path = argv[0],
                               .keep = "",
                               .argvs = shared,
                               .n_argvs = 1,
                               .base_env = base,
                               .n_base_env = 1,
                               .n_workers = n,
                               .worker_env = calloc(n, sizeof(char **)),
                               .streams = calloc(n, sizeof(*plan.streams)) };
    uint32_t i;

    shared[0] = argv;
    assert_non_null(plan.worker_env);
    assert_non_null(plan.streams);
    for (i = 0; i < n; i++) {
        plan.streams[i][GUARD_OUT].path = "";
        plan.streams[i][GUARD_ERR].path = "";
        plan.worker_env[i] = (char **)(uintptr_t)no_strings;
    }
    return plan;
}

static void plan_free(struct guard_plan *plan)
{
    free(plan->worker_env);
    free(plan->streams);
}

static void plans_go_round_and_broken_ones_are_refused(void **state)
{
    static char own[] = "RANK=0";
    char *own_env[] = { own, NULL };
    static char name[] = "/bin/echo";
    static char empty[] = "";
    char *argv[] = { name, empty, NULL };
    char **argvs[] = { argv, own_env };
    struct guard_plan plan = plan_of(argv, 2);
    struct guard_plan read;
    struct buf out = { 0 };
    size_t i;

    (void)state;
    plan.worker_env[1] = own_env;
    plan.argvs = argvs;
    plan.n_argvs = 2;
    plan.cpus = (const uint8_t *)"\1\2\3\4";
    plan.cpu_bytes = 2;
    plan.streams[1][GUARD_OUT] = (struct guard_stream){
        .kind = GUARD_STREAM_FILE, .shown = 1, .path = "/tmp/x"
    };
    plan.streams[1][GUARD_ERR].kind = GUARD_STREAM_JOINED;
    assert_int_equal(guard_plan_encode(&out, &plan), 0);
    assert_int_equal(guard_plan_decode(out.data, out.len, &read), 0);
    assert_int_equal(read.n_workers, 2);
    assert_int_equal(read.stdin_worker, GUARD_STDIN_NONE);
    assert_string_equal(read.path, "/bin/echo");
    assert_int_equal(read.n_argvs, 2);
    assert_string_equal(read.argvs[0][1], "");
    assert_null(read.argvs[0][2]);
    assert_string_equal(read.argvs[1][0], "RANK=0");
    assert_int_equal(read.cpu_bytes, 2);
    assert_memory_equal(read.cpus, "\1\2\3\4", 4);
    assert_int_equal(read.n_base_env, 1);
    assert_null(read.worker_env[0][0]);
    assert_string_equal(read.worker_env[1][0], "RANK=0");
    assert_int_equal(read.streams[0][GUARD_OUT].kind, GUARD_STREAM_OURS);
    assert_string_equal(read.streams[1][GUARD_OUT].path, "/tmp/x");
    assert_int_equal(read.streams[1][GUARD_OUT].shown, 1);
    assert_int_equal(read.streams[1][GUARD_ERR].kind, GUARD_STREAM_JOINED);
    guard_plan_destroy(&read);
    for (i = 0; i < out.len; i++) {
        assert_int_equal(guard_plan_decode(out.data, i, &read), -EPROTO);
    }
    for (i = 0; i < out.len; i++) {
        out.data[i] ^= 0xff;
        if (guard_plan_decode(out.data, out.len, &read) == 0) {
            guard_plan_destroy(&read);
        }
        out.data[i] ^= 0xff;
    }
    plan_free(&plan);
    buf_destroy(&out);
}

static void a_full_socket_keeps_what_is_left(void **state)
{
    struct guard_msg msg = { .type = GUARD_SIGNAL };
    struct guard_packet *packet = malloc(sizeof(*packet));
    struct guard_outbox out = { 0 };
    uint32_t n_sent = 0;
    uint32_t n_read = 0;
    int a;
    int b;
    int rc = 0;

    (void)state;
    assert_non_null(packet);
    assert_int_equal(guard_pair_open(false, &a, &b), 0);
    while (rc == 0) { /* nobody reads */
        msg.signo = n_sent++;
        assert_int_equal(guard_outbox_put(&out, &msg, NULL), 0);
        rc = guard_pair_flush(a, &out);
        assert_true(rc >= 0 && n_sent < 1000000);
    }
    while (n_read < n_sent) {
        struct reader reader;

        assert_true(guard_pair_flush(a, &out) >= 0);
        assert_int_equal(guard_pair_receive(b, packet), 1);
        reader = (struct reader){ .data = packet->data, .len = packet->len };
        while (guard_msg_decode(&reader, &msg) > 0) {
            assert_int_equal(msg.signo, n_read++);
        }
    }
    assert_int_equal(guard_pair_receive(b, packet), 0);
    (void)close(a);
    assert_int_equal(guard_pair_receive(b, packet), -ECONNRESET);
    (void)close(b);
    free(packet);
    guard_outbox_destroy(&out);
}

static void a_plan_travels_in_a_file(void **state)
{
    static char name[] = "/bin/true";
    char *argv[] = { name, NULL };
    struct guard_plan plan = plan_of(argv, 1);
    struct guard_packet *packet = malloc(sizeof(*packet));
    struct reader reader;
    struct guard_msg msg;
    void *data;
    int a;
    int b;

    (void)state;
    assert_non_null(packet);
    assert_int_equal(guard_pair_open(false, &a, &b), 0);
    assert_int_equal(guard_pair_send_plan(a, &plan), 0);
    assert_int_equal(guard_pair_receive(b, packet), 1);
    reader = (struct reader){ .data = packet->data, .len = packet->len };
    assert_int_equal(guard_msg_decode(&reader, &msg), 1);
    assert_int_equal(msg.type, GUARD_SPAWN);
    assert_int_equal(packet->n_fds, 1);
    data = mmap(NULL, msg.size, PROT_READ, MAP_PRIVATE, packet->fds[0], 0);
    assert_true(data != MAP_FAILED);
    plan_free(&plan);
    assert_int_equal(guard_plan_decode(data, msg.size, &plan), 0);
    assert_string_equal(plan.path, "/bin/true");
    guard_plan_destroy(&plan);
    (void)munmap(data, msg.size);
    guard_packet_close(packet);
    (void)close(a);
    (void)close(b);
    free(packet);
}

/* Descriptors arrive with the message they belong to, and with no other. */
static void descriptors_travel_with_their_message(void **state)
{
    const struct guard_msg plain = { .type = GUARD_EMPTY };
    struct guard_msg spawned = { .type = GUARD_SPAWNED };
    struct guard_packet *packet = malloc(sizeof(*packet));
    struct guard_outbox out = { 0 };
    size_t n_fds = 0;
    int pipe_fds[2];
    int a;
    int b;
    int i;

    (void)state;
    assert_non_null(packet);
    assert_int_equal(pipe(pipe_fds), 0);
    assert_int_equal(guard_pair_open(false, &a, &b), 0);
    for (i = 0; i < 4; i++) {
        spawned.worker = (uint32_t)i;
        spawned.count = (uint32_t)i % 3;
        assert_int_equal(guard_outbox_put(&out, &spawned, pipe_fds), 0);
        assert_int_equal(guard_outbox_put(&out, &plain, NULL), 0);
    }
    assert_int_equal(guard_pair_flush(a, &out), 0);
    while (guard_pair_receive(b, packet) == 1) {
        struct reader reader = { .data = packet->data, .len = packet->len };
        struct guard_msg msg = { 0 };
        size_t told = 0;

        while (guard_msg_decode(&reader, &msg) > 0) {
            assert_int_equal(told, 0); /* nothing follows it in its packet */
            told = msg.type == GUARD_SPAWNED ? msg.count : 0;
        }
        assert_int_equal(packet->n_fds, told);
        n_fds += told;
        guard_packet_close(packet);
    }
    assert_int_equal(n_fds, 0 + 1 + 2 + 0);
    (void)close(a);
    (void)close(b);
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
    free(packet);
    guard_outbox_destroy(&out);
}

/* --- a job, run in this process as the guard ---------------------------- */

struct heard {
    uint32_t n_spawned;
    uint32_t n_exited;
    uint32_t n_failed;
    struct guard_msg last_exit;
    struct guard_msg last_failure;
};

static void hear(const struct guard_msg *msg, const int *fds, void *arg)
{
    struct heard *heard = arg;

    (void)fds;
    if (msg->type == GUARD_SPAWNED) {
        heard->n_spawned++;
    } else if (msg->type == GUARD_EXITED) {
        heard->n_exited++;
        heard->last_exit = *msg;
    } else {
        heard->n_failed++;
        heard->last_failure = *msg;
    }
}

static struct inherited inherited;

static void job_start(struct guard_job *job, char **argv, uint32_t n,
                      struct heard *heard)
{
    struct guard_plan plan = plan_of(argv, n);
    struct guard_plan read;
    static struct buf out;

    out.len = 0;
    *heard = (struct heard){ 0 };
    inherited_take(&inherited);
    assert_int_equal(guard_plan_encode(&out, &plan), 0);
    assert_int_equal(guard_plan_decode(out.data, out.len, &read), 0);
    plan_free(&plan);
    assert_int_equal(guard_job_init(job, &inherited, hear, heard), 0);
    assert_int_equal(guard_job_begin(job, &read), 0);
}

static void job_finish(struct guard_job *job)
{
    uint64_t deadline_ms = clock_deadline(60000);

    for (;;) {
        int wait_ms = guard_job_step(job);

        if (job->phase >= GUARD_DONE) {
            break;
        }
        assert_true(clock_ms() < deadline_ms);
        clock_sleep_ms(wait_ms < 0 || wait_ms > 5 ? 5 : (uint64_t)wait_ms);
    }
    guard_spawner_destroy(&job->spawner);
    reaper_destroy(&job->reaper);
    guard_plan_destroy(&job->plan);
    guard_streams_drop(&job->streams);
    free(job->workers);
    free(inherited.children);
}

static void a_job_that_ends_is_done(void **state)
{
    static char name[] = "/bin/true";
    char *argv[] = { name, NULL };
    struct guard_job job;
    struct heard heard;

    (void)state;
    job_start(&job, argv, 20, &heard);
    job_finish(&job);
    assert_int_equal(job.phase, GUARD_DONE);
    assert_int_equal(heard.n_spawned, 20);
    assert_int_equal(heard.n_exited, 20);
    assert_int_equal(heard.n_failed, 0);
    assert_int_equal(heard.last_exit.status, 0);
    assert_true(heard.last_exit.peak_kib > 0);
    assert_int_equal(wait(NULL), -1);
    assert_int_equal(errno, ECHILD);
}

static void a_failed_exec_is_told_with_its_errno(void **state)
{
    static char name[] = "/etc/passwd";
    char *argv[] = { name, NULL };
    struct guard_job job;
    struct heard heard;

    (void)state;
    job_start(&job, argv, 3, &heard);
    job_finish(&job);
    assert_int_equal(heard.n_failed, 3);
    assert_int_equal(heard.last_failure.step, GUARD_STEP_EXEC);
    assert_int_equal(heard.last_failure.error, EACCES);
}

static void exit_127_of_a_program_is_no_failed_exec(void **state)
{
    static char shell[] = "/bin/sh";
    static char c[] = "-c";
    static char script[] = "exit 127";
    char *argv[] = { shell, c, script, NULL };
    struct guard_job job;
    struct heard heard;

    (void)state;
    job_start(&job, argv, 1, &heard);
    job_finish(&job);
    assert_int_equal(heard.n_failed, 0);
    assert_int_equal(WEXITSTATUS((int)heard.last_exit.status), 127);
}

static void a_stop_ends_what_is_deaf_after_its_grace(void **state)
{
    static char shell[] = "/bin/sh";
    static char c[] = "-c";
    static char script[] = "trap '' TERM; (trap '' TERM; sleep 100) & "
                           "setsid sleep 100 & wait; sleep 100";
    char *argv[] = { shell, c, script, NULL };
    struct guard_job job;
    struct heard heard;

    (void)state;
    job_start(&job, argv, 2, &heard);
    while (heard.n_spawned < 2) {
        (void)guard_job_step(&job);
    }
    guard_job_stop(&job, SIGTERM, 100);
    assert_int_equal(job.phase, GUARD_STOPPING);
    job_finish(&job);
    assert_int_equal(job.phase, GUARD_DONE);
    assert_int_equal(heard.n_exited, 2);
    assert_int_equal(wait(NULL), -1);
}

static void a_kill_ends_everything_at_once(void **state)
{
    static char shell[] = "/bin/sh";
    static char c[] = "-c";
    static char script[] = "trap '' TERM; setsid sleep 100 & sleep 100";
    char *argv[] = { shell, c, script, NULL };
    struct guard_job job;
    struct heard heard;

    (void)state;
    job_start(&job, argv, 2, &heard);
    (void)guard_job_step(&job);
    guard_job_kill(&job);
    job_finish(&job);
    assert_int_equal(job.phase, GUARD_DONE);
    assert_int_equal(heard.n_exited, 2);
    assert_int_equal(wait(NULL), -1);
}

static void a_job_stopped_before_it_starts_is_done(void **state)
{
    static char name[] = "/bin/true";
    char *argv[] = { name, NULL };
    struct guard_job job;
    struct heard heard;

    (void)state;
    job_start(&job, argv, 5, &heard);
    guard_job_stop(&job, SIGTERM, 1000);
    job_finish(&job);
    assert_int_equal(heard.n_spawned, 0);
    assert_int_equal(job.phase, GUARD_DONE);
}

/* What was there before is neither signalled nor waited for. */
static void children_to_skip_are_left_alone(void **state)
{
    struct reaper reaper = { 0 };
    pid_t earlier = fork();
    pid_t other;
    int status;

    (void)state;
    if (earlier == 0) {
        (void)pause();
        _exit(0);
    }
    other = fork();
    if (other == 0) {
        (void)pause();
        _exit(0);
    }
    reaper.skip.pids = &earlier;
    reaper.skip.n_pids = 1;
    assert_int_equal(reaper_kill_all(&reaper), REAP_EMPTY);
    assert_int_equal(kill(earlier, 0), 0);
    assert_int_equal(kill(other, 0), -1);
    (void)kill(earlier, SIGKILL);
    assert_int_equal(waitpid(earlier, &status, 0), earlier);
    reaper_destroy(&reaper);
}

/* The guard ends by itself, having proven that nothing is left. */
static void guard_must_end(pid_t guard)
{
    uint64_t deadline_ms = clock_deadline(60000);
    pid_t pid = 0;
    int status = -1;

    while (pid == 0 && clock_ms() < deadline_ms) {
        clock_sleep_ms(5);
        pid = waitpid(guard, &status, WNOHANG);
    }
    if (pid == 0) {
        (void)kill(guard, SIGKILL);
    }
    assert_int_equal(pid, guard);
    assert_int_equal(status, 0);
}

/*
 * The agent dies after the guard has read its SPAWN and before the guard has
 * answered: the answer's failure is what tells of the death.
 */
static void a_guard_that_cannot_answer_ends_everything(void **state)
{
    static char guard_name[] = "guard-under-test";
    char *guard_argv[] = { guard_name, NULL };
    static char name[] = "/bin/sleep";
    static char seconds[] = "100";
    char *argv[] = { name, seconds, NULL };
    struct guard_plan plan = plan_of(argv, 4);
    struct guard_process guard;

    (void)state;
    inherited_take(&inherited);
    assert_int_equal(guard_start(&(struct guard_setup){ .inherited = &inherited,
                                                        .argv = guard_argv,
                                                        .argc = 1 },
                                 &guard, NULL),
                     0);
    assert_int_equal(shutdown(guard.fd, SHUT_RD), 0);
    assert_int_equal(guard_pair_send_plan(guard.fd, &plan), 0);
    guard_must_end(guard.pid);
    (void)close(guard.fd);
    plan_free(&plan);
    free(inherited.children);
}

/* Read packets until one tells of an exit. */
static void wait_for_exit(int fd)
{
    uint64_t deadline_ms = clock_deadline(60000);
    struct guard_packet *packet = malloc(sizeof(*packet));
    bool exited = false;

    assert_non_null(packet);
    while (!exited && clock_ms() < deadline_ms) {
        struct reader reader;
        struct guard_msg msg;

        if (guard_pair_receive(fd, packet) != 1) {
            clock_sleep_ms(1);
            continue;
        }
        reader = (struct reader){ .data = packet->data, .len = packet->len };
        while (guard_msg_decode(&reader, &msg) > 0) {
            exited = exited || msg.type == GUARD_EXITED;
            assert_int_not_equal(msg.type, GUARD_EMPTY);
        }
        guard_packet_close(packet);
    }
    assert_true(exited);
    free(packet);
}

/* The agent dies between a job's exits and its EMPTY, which cannot be sent. */
static void a_guard_whose_last_word_fails_ends(void **state)
{
    static char guard_name[] = "guard-under-test";
    char *guard_argv[] = { guard_name, NULL };
    static char name[] = "/bin/sh";
    static char option[] = "-c";
    /* What is ignored stays so in the sleep, which outlives the TERM. */
    static char script[] = "trap \"\" TERM; sleep 0.5 & exit 0";
    char *argv[] = { name, option, script, NULL };
    struct guard_plan plan = plan_of(argv, 1);
    struct guard_process guard;

    (void)state;
    inherited_take(&inherited);
    assert_int_equal(guard_start(&(struct guard_setup){ .inherited = &inherited,
                                                        .argv = guard_argv,
                                                        .argc = 1 },
                                 &guard, NULL),
                     0);
    assert_int_equal(guard_pair_send_plan(guard.fd, &plan), 0);
    wait_for_exit(guard.fd);
    assert_int_equal(shutdown(guard.fd, SHUT_RD), 0);
    guard_must_end(guard.pid);
    (void)close(guard.fd);
    plan_free(&plan);
    free(inherited.children);
}

/* A guard with sleepers to start; nothing is sent to it yet. */
struct lease_test {
    struct guard_process guard;
    struct guard_plan plan;
    unsigned n_spawned;
    unsigned n_killed;
    bool fenced;
};

static void lease_begin(struct lease_test *test)
{
    static char guard_name[] = "guard-under-test";
    static char *guard_argv[] = { guard_name, NULL };
    static char name[] = "/bin/sleep";
    static char seconds[] = "100";
    static char *argv[] = { name, seconds, NULL };

    *test = (struct lease_test){ .plan = plan_of(argv, 2) };
    inherited_take(&inherited);
    assert_int_equal(guard_start(&(struct guard_setup){ .inherited = &inherited,
                                                        .argv = guard_argv,
                                                        .argc = 1 },
                                 &test->guard, NULL),
                     0);
}

static void lease_send(struct lease_test *test, uint64_t from_now_ms)
{
    struct guard_outbox out = { 0 };
    const struct guard_msg msg = {
        .type = GUARD_LEASE, .at_ns = clock_boot_ns() + from_now_ms * 1000000
    };

    assert_int_equal(guard_outbox_put(&out, &msg, NULL), 0);
    assert_int_equal(guard_pair_flush(test->guard.fd, &out), 0);
    guard_outbox_destroy(&out);
}

/* Listen until nothing is left, and end the guard. */
static void lease_finish(struct lease_test *test)
{
    uint64_t deadline_ms = clock_deadline(60000);
    struct guard_packet *packet = malloc(sizeof(*packet));
    bool empty = false;

    assert_non_null(packet);
    while (!empty && clock_ms() < deadline_ms) {
        struct reader reader;
        struct guard_msg msg;

        if (guard_pair_receive(test->guard.fd, packet) != 1) {
            clock_sleep_ms(1);
            continue;
        }
        reader = (struct reader){ .data = packet->data, .len = packet->len };
        while (guard_msg_decode(&reader, &msg) > 0) {
            test->n_spawned += msg.type == GUARD_SPAWNED;
            test->n_killed += msg.type == GUARD_EXITED && msg.status == SIGKILL;
            test->fenced = test->fenced || msg.type == GUARD_FENCED;
            empty = empty || msg.type == GUARD_EMPTY;
        }
        guard_packet_close(packet);
    }
    assert_true(empty);
    free(packet);
    (void)close(test->guard.fd);
    guard_must_end(test->guard.pid);
    plan_free(&test->plan);
    free(inherited.children);
}

/* Nobody tells the guard: its agent may be stopped. */
static void a_lease_that_ends_kills_all(void **state)
{
    struct lease_test test;

    (void)state;
    lease_begin(&test);
    lease_send(&test, 200);
    assert_int_equal(guard_pair_send_plan(test.guard.fd, &test.plan), 0);
    lease_finish(&test);
    assert_true(test.fenced);
    assert_int_equal(test.n_spawned, 2);
    assert_int_equal(test.n_killed, 2);
}

/* START came late: our ranks may be somebody else's by now. */
static void a_lease_that_is_over_starts_nothing(void **state)
{
    struct lease_test test;

    (void)state;
    lease_begin(&test);
    lease_send(&test, 0);
    clock_sleep_ms(20); /* it ends while nothing runs */
    assert_int_equal(guard_pair_send_plan(test.guard.fd, &test.plan), 0);
    lease_finish(&test);
    assert_true(test.fenced);
    assert_int_equal(test.n_spawned, 0);
}

static void a_lease_that_is_prolonged_goes_on(void **state)
{
    struct lease_test test;
    int i;

    (void)state;
    lease_begin(&test);
    lease_send(&test, 500);
    assert_int_equal(guard_pair_send_plan(test.guard.fd, &test.plan), 0);
    for (i = 0; i < 20; i++) {
        clock_sleep_ms(50);
        lease_send(&test, 500);
    }
    /* It ran for two leases; now it is let go. */
    lease_finish(&test);
    assert_true(test.fenced);
    assert_int_equal(test.n_killed, 2);
}

static int become_subreaper(void **state)
{
    (void)state;
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_go_round),
        cmocka_unit_test(packets_hold_whole_messages),
        cmocka_unit_test(descriptors_travel_with_their_message),
        cmocka_unit_test(plans_go_round_and_broken_ones_are_refused),
        cmocka_unit_test(a_full_socket_keeps_what_is_left),
        cmocka_unit_test(a_plan_travels_in_a_file),
        cmocka_unit_test(a_job_that_ends_is_done),
        cmocka_unit_test(a_failed_exec_is_told_with_its_errno),
        cmocka_unit_test(exit_127_of_a_program_is_no_failed_exec),
        cmocka_unit_test(a_stop_ends_what_is_deaf_after_its_grace),
        cmocka_unit_test(a_kill_ends_everything_at_once),
        cmocka_unit_test(a_job_stopped_before_it_starts_is_done),
        cmocka_unit_test(children_to_skip_are_left_alone),
        cmocka_unit_test(a_guard_that_cannot_answer_ends_everything),
        cmocka_unit_test(a_guard_whose_last_word_fails_ends),
        cmocka_unit_test(a_lease_that_ends_kills_all),
        cmocka_unit_test(a_lease_that_is_over_starts_nothing),
        cmocka_unit_test(a_lease_that_is_prolonged_goes_on),
    };

    return cmocka_run_group_tests(tests, become_subreaper, NULL);
}
