/*
 * The codec between agents: every message goes round, whole and in pieces, and
 * what is no message is told as soon as it shows.
 */
#include "launcher/agent_proto.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct agent_msg messages[] = {
    { .type = AGENT_HELLO,
      .incarnation = 0x1122334455667788,
      .min_nodes = 1,
      .max_nodes = 2,
      .node_rank = 1,
      .n_workers = 8,
      .host = "host-b",
      .run_id = "job",
      .role = "trainer" },
    { .type = AGENT_HEARTBEAT, .incarnation = 1, .seq = UINT64_MAX },
    { .type = AGENT_FAILED,
      .round = 3,
      .code = 7,
      .for_good = 1,
      .text = "rank 3 exited with code 7" },
    { .type = AGENT_ENDED,
      .round = 3,
      .code = 7,
      .n_stopped = 1,
      .n_done = 2,
      .n_failed = 3,
      .text = "rank 3 exited",
      .report = "  a\n  b\n" },
    { .type = AGENT_STOP_JOB,
      .round = 3,
      .code = 143,
      .signo = 15,
      .at_once = 1,
      .text = "SIGTERM" },
    { .type = AGENT_LEAVE, .round = 3, .text = "SIGTERM" },
    { .type = AGENT_BYE, .round = 3 },
    { .type = AGENT_FIRST_DONE, .round = 3 },
    { .type = AGENT_WELCOME, .lease_ms = 10000, .host = "host-a" },
    { .type = AGENT_REFUSED, .code = 125, .text = "no" },
    { .type = AGENT_ACK, .seq = 5 },
    { .type = AGENT_STATUS, .text = "1 of 2 nodes here" },
    { .type = AGENT_START,
      .round = 4,
      .restarts = 1,
      .max_restarts = 2,
      .changes = 3,
      .group_rank = 4,
      .n_nodes = 5,
      .base_rank = 6,
      .world_size = 7,
      .role_base_rank = 8,
      .role_world_size = 9,
      .port = 29500,
      .address = "10.0.0.1" },
    { .type = AGENT_STOP,
      .round = 4,
      .signo = 2,
      .at_once = 1,
      .for_good = 1,
      .text = "why" },
    { .type = AGENT_END,
      .round = 4,
      .code = 3,
      .mine = 1,
      .said = 1,
      .text = "why",
      .report = "  lines\n" },
};

#define N_MESSAGES (sizeof(messages) / sizeof(messages[0]))

static void assert_same_text(const char *a, const char *b)
{
    assert_string_equal(a, b != NULL ? b : "");
}

static void assert_same(const struct agent_msg *msg,
                        const struct agent_msg *want)
{
    assert_int_equal(msg->type, want->type);
    assert_memory_equal(msg, want, offsetof(struct agent_msg, host));
    assert_same_text(msg->host, want->host);
    assert_same_text(msg->run_id, want->run_id);
    assert_same_text(msg->role, want->role);
    assert_same_text(msg->address, want->address);
    assert_same_text(msg->text, want->text);
    assert_same_text(msg->report, want->report);
}

static void every_message_goes_round(void **state)
{
    struct buf out = { 0 };
    struct reader reader;
    struct agent_msg msg;
    size_t i;

    (void)state;
    assert_int_equal(N_MESSAGES, AGENT_END);
    for (i = 0; i < N_MESSAGES; i++) {
        assert_int_equal(agent_msg_encode(&out, &messages[i]), 0);
    }
    reader = (struct reader){ .data = out.data, .len = out.len };
    for (i = 0; i < N_MESSAGES; i++) {
        assert_int_equal(agent_msg_decode(&reader, &msg), 1);
        assert_same(&msg, &messages[i]);
    }
    assert_int_equal(agent_msg_decode(&reader, &msg), 0);
    buf_destroy(&out);
}

static void a_frame_in_pieces_is_waited_for(void **state)
{
    struct agent_msg msg;
    size_t i;

    (void)state;
    for (i = 0; i < N_MESSAGES; i++) {
        struct buf out = { 0 };
        size_t len;

        assert_int_equal(agent_msg_encode(&out, &messages[i]), 0);
        for (len = 0; len < out.len; len++) {
            uint8_t *part = malloc(len + 1); /* so that a sanitizer sees */
            struct reader reader = { .data = part, .len = len };

            assert_non_null(part);
            memcpy(part, out.data, len);
            assert_int_equal(agent_msg_decode(&reader, &msg), 0);
            assert_int_equal(reader.pos, 0);
            free(part);
        }
        buf_destroy(&out);
    }
}

/* The bytes of a heartbeat, as they are on the wire. */
static void the_wire_format_is_what_it_was(void **state)
{
    static const uint8_t wire[] = {
        25, 0, 0, 0,             /* length of the rest */
        2,                       /* HEARTBEAT */
        8,  7, 6, 5, 4, 3, 2, 1, /* incarnation */
        9,  0, 0, 0, 0, 0, 0, 0, /* round */
        1,  2, 0, 0, 0, 0, 0, 0, /* seq */
    };
    static const uint8_t preface[] = { 'F', 'L', 'C', 'H', 1, 0, 0, 0 };
    const struct agent_msg msg = { .type = AGENT_HEARTBEAT,
                                   .incarnation = 0x0102030405060708,
                                   .round = 9,
                                   .seq = 0x201 };
    struct buf out = { 0 };

    (void)state;
    assert_int_equal(agent_preface_encode(&out), 0);
    assert_int_equal(out.len, sizeof(preface));
    assert_memory_equal(out.data, preface, sizeof(preface));
    out.len = 0;
    assert_int_equal(agent_msg_encode(&out, &msg), 0);
    assert_int_equal(out.len, sizeof(wire));
    assert_memory_equal(out.data, wire, sizeof(wire));
    buf_destroy(&out);
}

static void prefaces_of_others_are_told_at_once(void **state)
{
    uint32_t version = 0;

    (void)state;
    assert_int_equal(
        agent_preface_decode((const uint8_t *)"FLCH\1\0\0", 7, &version), 0);
    assert_int_equal(
        agent_preface_decode((const uint8_t *)"FLCH\2\0\0\0", 8, &version), 1);
    assert_int_equal(version, 2);
    assert_int_equal(agent_preface_decode((const uint8_t *)"FL", 2, &version),
                     0);
    assert_int_equal(agent_preface_decode((const uint8_t *)"H", 1, &version),
                     -EPROTO);
    assert_int_equal(
        agent_preface_decode((const uint8_t *)"FLASH", 5, &version), -EPROTO);
}

static void what_is_no_frame_is_refused(void **state)
{
    static const struct {
        uint8_t bytes[40];
        size_t len;
    } frames[] = {
        { { 16, 0, 0, 0 }, 4 },            /* too short for a header */
        { { 0xff, 0xff, 0xff, 0xff }, 4 }, /* 4 GiB: not waited for */
        { { 0xfd, 0xff, 0, 0 }, 4 },       /* one byte more than there may be */
        { { 17, 0, 0, 0, 0 }, 21 },        /* no type */
        { { 17, 0, 0, 0, AGENT_END + 1 }, 21 },
        { { 17, 0, 0, 0, AGENT_HEARTBEAT }, 21 }, /* its field is missing */
        { { 18, 0, 0, 0, AGENT_BYE }, 22 },       /* a byte too many */
        /* Texts: empty, without their 0, with two, longer than the frame. */
        { { 21, 0, 0, 0, AGENT_STATUS }, 25 },
        { { 22, 0, 0, 0, AGENT_STATUS, [21] = 1, [25] = 'a' }, 26 },
        { { 23, 0, 0, 0, AGENT_STATUS, [21] = 2, [25] = 0, 0 }, 27 },
        { { 22, 0, 0, 0, AGENT_STATUS, [21] = 9, [25] = 0 }, 26 },
        { { 22, 0, 0, 0, AGENT_STATUS, [21] = 0xff, 0xff, 0xff, 0xff, 0 }, 26 },
    };
    struct agent_msg msg;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
        struct reader reader = { .data = frames[i].bytes,
                                 .len = frames[i].len };

        assert_int_equal(agent_msg_decode(&reader, &msg), -EPROTO);
    }
}

static void a_text_that_is_too_long_is_cut(void **state)
{
    static char text[2 * AGENT_REPORT_MAX];
    const struct agent_msg long_one = { .type = AGENT_END,
                                        .text = text,
                                        .report = text };
    struct buf out = { 0 };
    struct reader reader;
    struct agent_msg msg;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    assert_int_equal(agent_msg_encode(&out, &long_one), 0);
    assert_true(out.len <= AGENT_FRAME_MAX);
    reader = (struct reader){ .data = out.data, .len = out.len };
    assert_int_equal(agent_msg_decode(&reader, &msg), 1);
    assert_int_equal(strlen(msg.text), AGENT_TEXT_MAX - 1);
    assert_int_equal(strlen(msg.report), AGENT_REPORT_MAX - 1);
    buf_destroy(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_goes_round),
        cmocka_unit_test(a_frame_in_pieces_is_waited_for),
        cmocka_unit_test(the_wire_format_is_what_it_was),
        cmocka_unit_test(prefaces_of_others_are_told_at_once),
        cmocka_unit_test(what_is_no_frame_is_refused),
        cmocka_unit_test(a_text_that_is_too_long_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
