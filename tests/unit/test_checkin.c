/*
 * The check-in between threads that share a real store: good jobs, stale
 * stores, missing and doubled ranks.
 */
#include "common/clock.h"
#include "tests/unit/served_store.h"
#include "tests/unit/unit.h"
#include "worker/checkin.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_MS 60000
#define RANKS_MAX 16

struct member {
    const struct fixture *fixture;
    pthread_t thread;
    struct checkin_record self;
    uint64_t timeout_ms;
    int rc;
    struct flaunch_error error;
};

static void *member_run(void *arg)
{
    struct member *member = arg;
    uint64_t deadline_ms = clock_deadline(member->timeout_ms);
    struct store_client client;
    char warning[VERDICT_MAX];
    uint32_t n_told = 0;

    member->rc = store_client_connect(&client, "127.0.0.1",
                                      member->fixture->port, deadline_ms, NULL);
    if (member->rc == 0) {
        member->rc = checkin(&client, &member->self, deadline_ms, &n_told,
                             warning, &member->error);
        assert_true(member->self.rank == 0 || n_told == 0);
    }
    store_client_close(&client);
    return NULL;
}

static struct member member_of(const struct fixture *fixture, uint32_t rank,
                               uint32_t world_size)
{
    return (struct member){ .fixture = fixture,
                            .timeout_ms = LONG_MS,
                            .self = { .rank = rank,
                                      .world_size = world_size,
                                      .pid = 100 + rank,
                                      .host = "h",
                                      .machine = "m",
                                      .backend = "none" } };
}

static void run_all(struct member *members, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        assert_int_equal(
            pthread_create(&members[i].thread, NULL, member_run, &members[i]),
            0);
    }
    for (i = 0; i < n; i++) {
        assert_int_equal(pthread_join(members[i].thread, NULL), 0);
    }
}

static void good_job(const struct fixture *fixture, uint32_t n)
{
    struct member members[RANKS_MAX];
    uint32_t i;

    for (i = 0; i < n; i++) {
        members[i] = member_of(fixture, n - 1 - i, n);
    }
    run_all(members, n);
    for (i = 0; i < n; i++) {
        if (members[i].rc < 0) {
            fail_msg("rank %u: %s", members[i].self.rank,
                     members[i].error.text);
        }
        assert_string_equal(members[i].self.nonce, members[0].self.nonce);
    }
}

static void a_whole_job_gets_one_nonce(void **state)
{
    good_job(*state, 1);
    good_job(*state, 2);
    good_job(*state, RANKS_MAX);
}

/* torchrun keeps its store over restarts: everything is still there. */
static void what_an_earlier_attempt_left_is_not_believed(void **state)
{
    struct member members[3];
    int i;

    for (i = 0; i < 5; i++) {
        good_job(*state, 4);
    }
    /* One that failed, then one that is well again. */
    for (i = 0; i < 3; i++) {
        members[i] = member_of(*state, (uint32_t)i, 3);
    }
    (void)snprintf(members[1].self.error, sizeof(members[1].self.error), "bad");
    run_all(members, 3);
    for (i = 0; i < 3; i++) {
        assert_int_equal(members[i].rc, -EHOSTDOWN);
        assert_string_equal(members[i].error.text, "rank 1 on h: bad");
    }
    good_job(*state, 3);
}

static void a_late_rank_0_finds_the_others(void **state)
{
    struct member members[3];
    int i;

    good_job(*state, 3); /* leaves a nonce that the early ones will read */
    for (i = 0; i < 3; i++) {
        members[i] = member_of(*state, (uint32_t)i, 3);
    }
    for (i = 1; i < 3; i++) {
        assert_int_equal(
            pthread_create(&members[i].thread, NULL, member_run, &members[i]),
            0);
    }
    clock_sleep_ms(100);
    run_all(members, 1);
    for (i = 1; i < 3; i++) {
        assert_int_equal(pthread_join(members[i].thread, NULL), 0);
        assert_int_equal(members[i].rc, 0);
        assert_string_equal(members[i].self.nonce, members[0].self.nonce);
    }
}

static void a_missing_rank_is_named_to_all_in_time(void **state)
{
    struct member members[3];
    uint64_t started_ms = clock_ms();
    int i;

    for (i = 0; i < 3; i++) {
        members[i] = member_of(*state, (uint32_t)i, 4);
        members[i].timeout_ms = 4000;
    }
    run_all(members, 3);
    assert_true(clock_ms() - started_ms < 40000);
    for (i = 0; i < 3; i++) {
        assert_int_equal(members[i].rc, -EHOSTDOWN);
        assert_non_null(
            strstr(members[i].error.text, "rank 3 of 4 did not come within"));
    }
}

static void without_rank_0_the_others_say_so(void **state)
{
    struct member member = member_of(*state, 1, 2);

    member.timeout_ms = 2000;
    run_all(&member, 1);
    assert_int_equal(member.rc, -ETIMEDOUT);
    assert_non_null(strstr(member.error.text, "rank 0 did not come within"));
}

static void a_rank_that_is_there_twice_is_told_to_all(void **state)
{
    struct member members[4];
    int i;

    for (i = 0; i < 3; i++) {
        members[i] = member_of(*state, (uint32_t)i, 4);
    }
    members[3] = member_of(*state, 2, 4);
    members[3].self.pid = 999;
    run_all(members, 4);
    for (i = 0; i < 4; i++) {
        assert_int_equal(members[i].rc, -EHOSTDOWN);
        assert_non_null(
            strstr(members[i].error.text, "rank 2 is there twice: pid"));
    }
}

static void a_rank_outside_the_job_is_told(void **state)
{
    struct member members[2];

    members[0] = member_of(*state, 0, 2);
    members[1] = member_of(*state, 5, 8);
    run_all(members, 2);
    assert_int_equal(members[1].rc, -EHOSTDOWN);
    assert_non_null(strstr(members[0].error.text,
                           "rank 5 on h has WORLD_SIZE 8 and rank 0 has 2"));
}

/* A slot was taken and its owner died before it wrote. */
static void an_empty_slot_holds_nobody_up(void **state)
{
    struct fixture *fixture = *state;
    struct store_client client;
    int64_t slot;

    assert_int_equal(store_client_connect(&client, "127.0.0.1", fixture->port,
                                          clock_deadline(LONG_MS), NULL),
                     0);
    assert_int_equal(store_client_add(&client, "flaunch/checkin/seq", 1,
                                      clock_deadline(LONG_MS), &slot, NULL),
                     0);
    store_client_close(&client);
    good_job(fixture, 4);
}

static void strange_bytes_in_a_slot_are_passed_over(void **state)
{
    struct fixture *fixture = *state;
    uint64_t deadline_ms = clock_deadline(LONG_MS);
    struct store_client client;
    int64_t slot;

    assert_int_equal(store_client_connect(&client, "127.0.0.1", fixture->port,
                                          deadline_ms, NULL),
                     0);
    assert_int_equal(store_client_add(&client, "flaunch/checkin/seq", 1,
                                      deadline_ms, &slot, NULL),
                     0);
    assert_int_equal(
        store_client_set(&client, "flaunch/checkin/mail/1",
                         (struct bytes){ (const uint8_t *)"garbage", 7 },
                         deadline_ms, NULL),
        0);
    store_client_close(&client);
    good_job(fixture, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_whole_job_gets_one_nonce),
        TEST(what_an_earlier_attempt_left_is_not_believed),
        TEST(a_late_rank_0_finds_the_others),
        TEST(a_missing_rank_is_named_to_all_in_time),
        TEST(without_rank_0_the_others_say_so),
        TEST(a_rank_that_is_there_twice_is_told_to_all),
        TEST(a_rank_outside_the_job_is_told),
        TEST(an_empty_slot_holds_nobody_up),
        TEST(strange_bytes_in_a_slot_are_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
