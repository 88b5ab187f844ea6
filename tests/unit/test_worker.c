/*
 * Device choice, records and verdict.
 */
#include "tests/unit/unit.h"
#include "worker/checkin_record.h"
#include "worker/device.h"
#include "common/dynlib.h"
#include "worker/nccl_env.h"
#include "worker/nccl_roots.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void devices_are_chosen_without_modulo(void **state)
{
    static const struct {
        struct device_request request;
        int rc;
        int device;
    } rows[] = {
        { { .n_gpus = 0, .wanted = -1 }, 0, DEVICE_CPU },
        { { .n_gpus = 1, .wanted = -1, .local_rank = 3 }, 0, 0 },
        { { .n_gpus = 4, .wanted = -1, .local_rank = 3 }, 0, 3 },
        { { .n_gpus = 2, .wanted = -1, .local_rank = 2 }, -ENODEV, 0 },
        { { .n_gpus = 4, .wanted = 2, .local_rank = 0 }, 0, 2 },
        { { .n_gpus = 4, .wanted = 4, .local_rank = 0 }, -ENODEV, 0 },
        { { .n_gpus = 0, .wanted = 0 }, -ENODEV, 0 },
        { { .n_gpus = 3, .wanted = -1, .local_rank = 7, .visible = "2,0,1" },
          -ENODEV,
          0 },
        { { .n_gpus = 4,
            .wanted = -1,
            .local_rank = 3,
            .no_set_device_rank = true },
          0,
          0 },
    };
    struct flaunch_error error;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int device = -7;

        assert_int_equal(device_choose(&rows[i].request, &device, &error),
                         rows[i].rc);
        if (rows[i].rc == 0) {
            assert_int_equal(device, rows[i].device);
        }
    }
}

#define WORLD 4

static void seats_fill(struct checkin_record *seats)
{
    uint32_t i;

    memset(seats, 0, WORLD * sizeof(*seats));
    for (i = 0; i < WORLD; i++) {
        seats[i] = (struct checkin_record){ .token = "t",
                                            .nonce = "n",
                                            .rank = i,
                                            .world_size = WORLD,
                                            .local_rank = i,
                                            .pid = 10 + i,
                                            .host = "host",
                                            .machine = "m",
                                            .backend = "gloo" };
    }
}

static void records_go_round_and_broken_ones_are_refused(void **state)
{
    struct checkin_record record = { .token = "0123456789abcdef",
                                     .nonce = "fedcba9876543210",
                                     .rank = 3,
                                     .world_size = 4,
                                     .local_rank = 1,
                                     .local_world_size = 2,
                                     .local_rank_assumed = true,
                                     .pid = 99,
                                     .posted_s = 1700000000,
                                     .nccl_version = 22809,
                                     .device_plus_1 = 2,
                                     .host = "node7",
                                     .machine = "boot",
                                     .gpu = "0000:01:00.0",
                                     .visible = "1",
                                     .nccl_path = "/lib/libnccl.so.2",
                                     .backend = "nccl",
                                     .settings = "NCCL_ALGO=Ring",
                                     .interface = "eth0 192.0.2.1",
                                     .no_gpu = "no driver",
                                     .error = "no driver" };
    struct checkin_record read;
    struct buf out = { 0 };
    size_t i;

    (void)state;
    assert_int_equal(checkin_record_encode(&out, &record), 0);
    assert_int_equal(checkin_record_decode(out.data, out.len, &read), 0);
    assert_memory_equal(&record, &read, sizeof(read));
    for (i = 0; i < out.len; i++) {
        assert_int_equal(checkin_record_decode(out.data, i, &read), -EPROTO);
    }
    assert_int_equal(buf_append_u8(&out, 0), 0);
    assert_int_equal(checkin_record_decode(out.data, out.len, &read), -EPROTO);
    out.len = 36;
    assert_int_equal(buf_append_u32(&out, TOKEN_LEN + 1), 0); /* too long */
    for (i = 0; i < 200; i++) {
        assert_int_equal(buf_append_u8(&out, 'x'), 0);
    }
    assert_int_equal(checkin_record_decode(out.data, out.len, &read), -EPROTO);
    buf_destroy(&out);
}

static void verdict_is(struct checkin_record *seats, double waited_s,
                       bool judged, const char *words)
{
    char text[VERDICT_MAX];

    assert_int_equal(checkin_judge(seats, WORLD, waited_s, text), judged);
    if (words[0] == '\0') {
        assert_string_equal(text, "");
    } else if (strstr(text, words) == NULL) {
        fail_msg("wanted: %s\ngot: %s", words, text);
    }
}

static void a_whole_job_is_well(void **state)
{
    struct checkin_record seats[WORLD];

    (void)state;
    seats_fill(seats);
    verdict_is(seats, 0, true, "");
}

static void missing_ranks_are_named_when_the_time_is_up(void **state)
{
    struct checkin_record seats[WORLD];

    (void)state;
    seats_fill(seats);
    seats[1].token[0] = '\0';
    seats[3].token[0] = '\0';
    verdict_is(seats, 0, false, "");
    verdict_is(seats, 12.5, true,
               "ranks 1, 3 of 4 did not come within 12.5 s; here are rank 0 on "
               "host, rank 2 on host");
    seats[1].token[0] = 't';
    verdict_is(seats, 1, true, "rank 3 of 4 did not come within 1.0 s");
}

static void an_error_of_one_rank_is_everybodys_at_once(void **state)
{
    struct checkin_record seats[WORLD];

    (void)state;
    seats_fill(seats);
    seats[3].token[0] = '\0';
    (void)snprintf(seats[2].error, sizeof(seats[2].error), "no driver");
    verdict_is(seats, 0, true, "rank 2 on host: no driver");
}

/* Each its own GPU. */
static void seats_use(struct checkin_record *seats, const char *backend)
{
    uint32_t i;

    seats_fill(seats);
    for (i = 0; i < WORLD; i++) {
        (void)snprintf(seats[i].gpu, sizeof(seats[i].gpu), "0000:0%u:00.0", i);
        (void)snprintf(seats[i].visible, sizeof(seats[i].visible), "0,1,2,3");
        (void)snprintf(seats[i].backend, sizeof(seats[i].backend), "%s",
                       backend);
        seats[i].device_plus_1 = i + 1;
    }
}

static void what_does_not_fit_together_is_named(void **state)
{
    struct checkin_record seats[WORLD];

    (void)state;
    seats_fill(seats);
    seats[1].world_size = 8;
    verdict_is(seats, 0, true, "rank 1 on host has WORLD_SIZE 8 and rank 0");

    seats_fill(seats);
    (void)snprintf(seats[3].backend, sizeof(seats[3].backend), "none");
    verdict_is(seats, 0, true, "rank 0 asks for the backend gloo and rank 3");

    seats_fill(seats);
    seats[2].nccl_version = 22809;
    verdict_is(seats, 0, true, "NCCL version");

    seats_fill(seats);
    seats_use(seats, "nccl");
    (void)snprintf(seats[3].gpu, sizeof(seats[3].gpu), "0000:01:00.0");
    verdict_is(seats, 0, true,
               "ranks 1 and 3 on host both use the GPU 0000:01:00.0 (as cuda:1 "
               "and cuda:3 with CUDA_VISIBLE_DEVICES=0,1,2,3 and 0,1,2,3)");
    (void)snprintf(seats[3].machine, sizeof(seats[3].machine), "other");
    verdict_is(seats, 0, true, ""); /* another machine's GPU */
    /* A UUID is one GPU's, whatever containers call their host. */
    (void)snprintf(seats[1].gpu, sizeof(seats[1].gpu), "GPU-1");
    (void)snprintf(seats[3].gpu, sizeof(seats[3].gpu), "GPU-1");
    verdict_is(seats, 0, true, "ranks 1 and 3 on host both use the GPU GPU-1");
    seats_use(seats, "gloo"); /* which does not mind */
    (void)snprintf(seats[3].gpu, sizeof(seats[3].gpu), "0000:01:00.0");
    verdict_is(seats, 0, true, "");

    seats_use(seats, "nccl");
    (void)snprintf(seats[2].backend, sizeof(seats[2].backend), "gloo");
    (void)snprintf(seats[2].no_gpu, sizeof(seats[2].no_gpu), "no driver");
    verdict_is(seats, 0, true,
               "rank 2 on host has no GPU (no driver), and rank 0 on host uses "
               "one");

    seats_fill(seats);
    seats[0].local_rank_assumed = seats[3].local_rank_assumed = true;
    verdict_is(seats, 0, true, "LOCAL_RANK is not set");
    (void)snprintf(seats[3].host, sizeof(seats[3].host), "other");
    verdict_is(seats, 0, true, "");
}

static void settings_that_differ_are_warned_of(void **state)
{
    struct checkin_record seats[WORLD];
    char text[VERDICT_MAX];

    (void)state;
    seats_fill(seats);
    checkin_warn(seats, WORLD, text);
    assert_string_equal(text, "");
    (void)snprintf(seats[2].settings, sizeof(seats[2].settings),
                   "NCCL_ALGO=Ring");
    checkin_warn(seats, WORLD, text);
    assert_non_null(strstr(text, "rank 0 on host has \"\" and rank 2 on host "
                                 "\"NCCL_ALGO=Ring\""));
    verdict_is(seats, 0, true, "");

    seats_fill(seats);
    (void)snprintf(seats[3].interface, sizeof(seats[3].interface),
                   "docker0 172.17.0.1");
    checkin_warn(seats, WORLD, text);
    assert_string_equal(text, ""); /* all on one host */
    (void)snprintf(seats[1].host, sizeof(seats[1].host), "other");
    checkin_warn(seats, WORLD, text);
    assert_non_null(strstr(text, "rank 3 on host is likely to use the "
                                 "interface docker0 172.17.0.1"));
}

static void local_interfaces_are_known(void **state)
{
    char text[96];

    (void)state;
    assert_true(nccl_env_interface_is_local("lo 127.0.0.1"));
    assert_true(nccl_env_interface_is_local("virbr0 192.168.122.1"));
    assert_true(nccl_env_interface_is_local("veth1a fe80::1"));
    assert_true(nccl_env_interface_is_local("eth0 169.254.1.2"));
    assert_false(nccl_env_interface_is_local("eth0 192.0.2.1"));
    assert_false(nccl_env_interface_is_local("ib0 fd00::1"));
    nccl_env_interface(text, sizeof(text));
    assert_true(text[0] == '\0' || strchr(text, ' ') != NULL);
}

/* Somebody has one of two libraries for himself, and not the first named. */
static void a_library_that_is_loaded_wins(void **state)
{
    static const char *const names[] = { "libresolv.so.2", "libcuda.so.1",
                                         NULL };
    void *function = NULL;
    const struct dynlib_symbol symbols[] = {
        { "cuDeviceGetUuid_v2", &function, false },
        { "flaunch_no_such_function", &function, true },
        { NULL, NULL, false },
    };
    char path[512];
    void *library;
    char why[64];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);
    void *theirs;

    (void)state;
    assert_true(n > 0);
    path[n] = '\0';
    (void)snprintf(strrchr(path, '/'), 64, "/../standin/libcuda.so.1");
    theirs = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(theirs);
    assert_int_equal(dynlib_load(names, symbols, &library, why, sizeof(why)),
                     0);
    assert_ptr_equal(library, theirs);
    assert_null(function); /* the optional one, which is not there */
    assert_int_equal(dlclose(theirs), 0);
}

static void interfaces_match_as_nccl_matches_them(void **state)
{
    (void)state;
    assert_true(nccl_env_interface_matches("eth", "eth0"));
    assert_true(nccl_env_interface_matches("ib,eth0", "eth0"));
    assert_false(nccl_env_interface_matches("=eth", "eth0"));
    assert_true(nccl_env_interface_matches("=eth0,lo", "lo"));
    assert_false(nccl_env_interface_matches("^eth", "eth0"));
    assert_true(nccl_env_interface_matches("^docker,lo", "eth0"));
    assert_false(nccl_env_interface_matches("^=lo", "lo"));
    assert_true(nccl_env_interface_matches("^=lo", "lo0"));
}

static void roots_are_where_nccl_expects_them(void **state)
{
    int i;

    (void)state;
    assert_int_equal(nccl_roots_count(1), 1);
    assert_int_equal(nccl_roots_count(256), 1);
    assert_int_equal(nccl_roots_count(257), 3);
    assert_int_equal(nccl_roots_count(16384), 128);
    /* 10 ranks and 4 roots: blocks of 3, 3, 2, 2 */
    assert_int_equal(nccl_root_rank(0, 4, 10), 0);
    assert_int_equal(nccl_root_rank(1, 4, 10), 3);
    assert_int_equal(nccl_root_rank(2, 4, 10), 6);
    assert_int_equal(nccl_root_rank(3, 4, 10), 8);
    for (i = 0; i < 10; i++) {
        int index = nccl_root_index(i, 4, 10);

        assert_int_equal(index >= 0, i == 0 || i == 3 || i == 6 || i == 8);
    }
}

static void hidden_gpus_are_told_from_wrong_ones(void **state)
{
    (void)state;
    assert_false(device_all_hidden(NULL));
    assert_true(device_all_hidden(""));
    assert_true(device_all_hidden("-1"));
    assert_true(device_all_hidden("NoDevFiles"));
    assert_false(device_all_hidden("0"));
    assert_false(device_all_hidden("GPU-abc"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_chosen_without_modulo),
        cmocka_unit_test(records_go_round_and_broken_ones_are_refused),
        cmocka_unit_test(a_whole_job_is_well),
        cmocka_unit_test(missing_ranks_are_named_when_the_time_is_up),
        cmocka_unit_test(an_error_of_one_rank_is_everybodys_at_once),
        cmocka_unit_test(what_does_not_fit_together_is_named),
        cmocka_unit_test(settings_that_differ_are_warned_of),
        cmocka_unit_test(a_library_that_is_loaded_wins),
        cmocka_unit_test(local_interfaces_are_known),
        cmocka_unit_test(interfaces_match_as_nccl_matches_them),
        cmocka_unit_test(roots_are_where_nccl_expects_them),
        cmocka_unit_test(hidden_gpus_are_told_from_wrong_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
