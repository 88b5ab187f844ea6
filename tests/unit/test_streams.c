/*
 * What workers write on its way to our screen: choices, prefixes, lines, last
 * lines, filters, and the queue with its thread.
 */
#include "common/clock.h"
#include "launcher/last_lines.h"
#include "launcher/lines.h"
#include "launcher/log_dir.h"
#include "launcher/log_filter.h"
#include "launcher/log_prefix.h"
#include "launcher/log_spec.h"
#include "launcher/output.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- choices ------------------------------------------------------------ */

static void redirects_and_tees_are_read(void **state)
{
    static const struct {
        const char *text;
        const char *what; /* four workers; NULL: refused */
    } rows[] = {
        { "0", "0000" },
        { "3", "3333" },
        { "0:1", "1000" },
        { "0:1,3:2", "1002" },
        { "0-2:3", "3330" },
        { "all:2,1:0", "2022" },
        { "0:1,0:2", "2000" },
        { "2:3,all:1", "1111" },
        { "4", NULL },
        { "", NULL },
        { "a", NULL },
        { " 3", NULL },
        { "0:3,", NULL },
        { "0:4", NULL },
        { "0:", NULL },
        { ":1", NULL },
        { "2-1:1", NULL },
        { "-1:1", NULL },
        { "0-:1", NULL },
        { "-:1", NULL },
        { "33", NULL },
        { "0:1 ,1:1", NULL },
        { "4:1", NULL },
        { "0-4:1", NULL },
        { "99999999999:1", NULL },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t what[4];
        struct err err = { 0 };
        int rc = log_spec_parse("tee", rows[i].text, 4, what, &err);
        size_t k;

        if (rows[i].what == NULL) {
            assert_int_equal(rc, -EINVAL);
            assert_non_null(strstr(err.text, "--tee="));
            continue;
        }
        assert_int_equal(rc, 0);
        for (k = 0; k < 4; k++) {
            assert_int_equal(what[k] + '0', rows[i].what[k]);
        }
    }
}

static void a_filter_may_name_ranks_that_are_not_there(void **state)
{
    bool shown[3];

    (void)state;
    assert_int_equal(log_filter_parse("", 3, shown, NULL), 0);
    assert_true(shown[0] && shown[1] && shown[2]);
    assert_int_equal(log_filter_parse("0,2-9", 3, shown, NULL), 0);
    assert_true(shown[0] && !shown[1] && shown[2]);
    assert_int_equal(log_filter_parse("5", 3, shown, NULL), 0);
    assert_true(!shown[0] && !shown[1] && !shown[2]);
    assert_int_equal(log_filter_parse("a", 3, shown, NULL), -EINVAL);
    assert_int_equal(log_filter_parse("0,", 3, shown, NULL), -EINVAL);
}

/* The table of what a worker gets, row by row. */
static void streams_follow_what_ours_are(void **state)
{
    enum {
        OURS = GUARD_STREAM_OURS,
        PIPE = GUARD_STREAM_PIPE,
        PTY = GUARD_STREAM_PTY,
        FILE_ = GUARD_STREAM_FILE,
        JOINED = GUARD_STREAM_JOINED,
    };
    static const struct {
        struct log_screen screen;
        uint8_t redirect;
        uint32_t n;
        uint32_t out;
        uint32_t err;
    } rows[] = {
        { { .same = true, .terminal = { true, true } }, 0, 1, PTY, JOINED },
        { { .same = true, .terminal = { true, true } }, 0, 4, PTY, JOINED },
        { { .same = true }, 0, 1, OURS, OURS },
        { { .same = true }, 0, 2, PIPE, JOINED },
        { { .terminal = { true, false } }, 0, 1, PTY, PIPE },
        { { .terminal = { false, true } }, 0, 1, OURS, PTY },
        { { .terminal = { false, true } }, 0, 2, PIPE, PTY },
        { { .same = false }, 0, 1, OURS, PIPE },
        { { .same = false }, 0, 2, PIPE, PIPE },
        { { .prefix = true }, 0, 1, PIPE, PIPE },
        { { .same = true, .prefix = true }, 0, 1, PIPE, JOINED },
        { { .pty = true }, 0, 1, PTY, PTY },
        { { .same = true, .pty = true }, 0, 3, PTY, JOINED },
        { { .raw = true }, 0, 4, OURS, OURS },
        { { .same = true }, LOG_OUT, 1, FILE_, PIPE },
        { { .same = true }, LOG_ERR, 1, OURS, FILE_ },
        { { .terminal = { true, true } }, LOG_OUT, 2, FILE_, PTY },
        { { .same = true }, LOG_OUT | LOG_ERR, 2, FILE_, FILE_ },
        { { .raw = true }, LOG_OUT, 2, FILE_, OURS },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct log_choice choice = { .redirect = rows[i].redirect };
        struct guard_stream streams[2];

        log_spec_streams(&choice, &rows[i].screen, rows[i].n, streams);
        if (streams[GUARD_OUT].kind != rows[i].out ||
            streams[GUARD_ERR].kind != rows[i].err) {
            fail_msg("row %zu: %u %u", i, streams[GUARD_OUT].kind,
                     streams[GUARD_ERR].kind);
        }
        assert_int_equal(streams[GUARD_OUT].shown, 1);
    }
}

static void what_is_hidden_is_still_read(void **state)
{
    struct log_choice choice = { .hidden = true };
    struct log_screen screen = { .same = true };
    struct guard_stream streams[2];

    (void)state;
    log_spec_streams(&choice, &screen, 1, streams);
    assert_int_equal(streams[GUARD_OUT].kind, GUARD_STREAM_PIPE);
    assert_int_equal(streams[GUARD_OUT].shown, 0);
}

static void prefixes_are_filled_in(void **state)
{
    static const struct log_prefix_values values = {
        .role_name = "tr", .host = "h", .rank = 12, .local_rank = 3
    };
    static const struct {
        const char *pattern;
        const char *text;
    } rows[] = {
        { LOG_PREFIX_DEFAULT, "[tr3]:" },
        { "<${role_name} ${rank}/${local_rank} $$ ${x} $rank> ",
          "<tr 12/3 $ ${x} 12> " },
        { "", "" },
        { "$", "$" },
        { "${", "${" },
        { "${rank", "${rank" },
        { "$rankx ${rank}x", "$rankx 12x" },
        { "${host}", "h" },
    };
    char text[64];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(
            log_prefix_fill(rows[i].pattern, &values, text, sizeof(text)),
            strlen(rows[i].text));
        assert_string_equal(text, rows[i].text);
    }
    assert_int_equal(
        log_prefix_fill("${role_name}${role_name}", &values, text, 4), 3);
    assert_string_equal(text, "trt");
}

/* --- lines -------------------------------------------------------------- */

#define ROOM (LINES_MAX + 2 * LINES_HEADER_MAX)

/* Pass text on; what was not taken is left to the caller. */
static size_t pass(struct line_sink *sink, struct line_source *source,
                   const char *text, bool final, struct buf *out)
{
    ptrdiff_t taken = lines_take(sink, source, (const uint8_t *)text,
                                 strlen(text), final, "", out, ROOM);

    assert_true(taken >= 0);
    return (size_t)taken;
}

static void assert_out(struct buf *out, const char *text)
{
    assert_int_equal(buf_append_u8(out, '\0'), 0);
    assert_string_equal((const char *)out->data, text);
    out->len = 0;
}

static void only_whole_lines_go_out(void **state)
{
    struct line_sink sink = { 0 };
    struct line_source a = { 0 };
    struct line_source b = { 0 };
    struct buf out = { 0 };

    (void)state;
    assert_int_equal(pass(&sink, &a, "one\ntwo\nthr", false, &out), 8);
    assert_out(&out, "one\ntwo\n");
    assert_int_equal(pass(&sink, &a, "thr", false, &out), 0);
    assert_int_equal(pass(&sink, &a, "10%\r20%\r3", false, &out), 8);
    assert_out(&out, "10%\r20%\r");
    assert_int_equal(pass(&sink, &a, "end", true, &out), 3);
    assert_out(&out, "end");
    assert_int_equal(pass(&sink, &b, "x\n", false, &out), 2);
    assert_out(&out, "\nx\n"); /* never two in one line */
    assert_int_equal(pass(&sink, &a, "50%\r", false, &out), 4);
    assert_int_equal(pass(&sink, &b, "y\n", false, &out), 2);
    assert_out(&out, "50%\ry\n"); /* never a newline after \r */
    assert_int_equal(pass(&sink, &a, "go", true, &out), 2);
    assert_int_equal(pass(&sink, &a, "ing\n", false, &out), 4);
    assert_out(&out, "going\n"); /* one line of one source stays one */
    buf_destroy(&out);
}

static void each_line_has_its_header(void **state)
{
    struct line_sink sink = { 0 };
    struct line_source a = { .header = "[a]:", .header_len = 4 };
    struct line_source b = { .header = "[b]:", .header_len = 4 };
    struct buf out = { 0 };

    (void)state;
    assert_int_equal(pass(&sink, &a, "1\n\n2\nrest", false, &out), 5);
    assert_out(&out, "[a]:1\n[a]:\n[a]:2\n");
    assert_int_equal(pass(&sink, &a, "\r1%\r2%\r\nx", false, &out), 8);
    assert_out(&out, "[a]:\r[a]:1%\r[a]:2%\r\n");
    assert_int_equal(pass(&sink, &a, "3%\r", false, &out), 3);
    assert_int_equal(pass(&sink, &a, "\nnext\n", false, &out), 6);
    assert_out(&out, "[a]:3%\r\n[a]:next\n"); /* \r\n in two reads */
    assert_int_equal(pass(&sink, &a, "un", true, &out), 2);
    assert_int_equal(pass(&sink, &a, "finished\n", false, &out), 9);
    assert_out(&out, "[a]:unfinished\n");
    assert_int_equal(pass(&sink, &a, "un", true, &out), 2);
    assert_int_equal(pass(&sink, &b, "b\n", false, &out), 2);
    assert_int_equal(pass(&sink, &a, "finished\n", false, &out), 9);
    assert_out(&out, "[a]:un\n[b]:b\n[a]:finished\n");
    assert_int_equal(lines_take(&sink, &a, (const uint8_t *)"t\nu\n", 4, false,
                                "12:00 ", &out, ROOM),
                     4);
    assert_out(&out, "12:00 [a]:t\n12:00 [a]:u\n");
    buf_destroy(&out);
}

static void a_long_line_goes_out_in_marked_pieces(void **state)
{
    const size_t len = 2 * LINES_MAX + 100;
    char *text = malloc(len + 1);
    struct line_source source = { .header = "[a]:", .header_len = 4 };
    struct line_sink sink = { 0 };
    struct buf out = { 0 };
    size_t n_letters = 0;
    size_t at = 0;
    size_t n = 0;
    size_t i;

    (void)state;
    assert_non_null(text);
    memset(text, 'z', len);
    memcpy(text + LINES_MAX - 2, "\xe6\x97\xa5", 3); /* not to be split */
    text[len - 1] = '\n';
    text[len] = '\0';
    while (at < len) {
        size_t given = len - at < LINES_MAX ? len - at : LINES_MAX;
        size_t taken =
            (size_t)lines_take(&sink, &source, (const uint8_t *)text + at,
                               given, false, "", &out, ROOM);

        assert_true(taken > 0 && taken <= given);
        assert_memory_equal(out.data, "[a]:", 4);
        assert_int_equal(out.data[out.len - 1], '\n');
        assert_true((out.data[4] & 0xc0) != 0x80);
        assert_true(at + taken == len ||
                    memcmp(out.data + out.len - strlen(LINES_CUT), LINES_CUT,
                           strlen(LINES_CUT)) == 0);
        for (i = 0; i < out.len; i++) {
            n_letters += out.data[i] == 'z';
        }
        out.len = 0;
        at += taken;
        n++;
    }
    assert_int_equal(n, 3);
    assert_int_equal(n_letters, len - 4);
    free(text);
    buf_destroy(&out);
}

/* However little room there is, nothing is lost, doubled or woven. */
static void little_room_only_makes_it_slower(void **state)
{
    static const char text[] = "alpha\nbeta\r\ngamma\rdelta\n\n\nepsilon\n";
    static const char *const headers[] = { "", "[h]:" };
    size_t k;

    (void)state;
    for (k = 0; k < 2; k++) {
        struct line_source whole = { .header = headers[k],
                                     .header_len = strlen(headers[k]) };
        struct line_source split = whole;
        struct line_sink sinks[2] = { { 0 } };
        struct buf expected = { 0 };
        struct buf out = { 0 };
        size_t at = 0;

        assert_int_equal(pass(&sinks[0], &whole, text, false, &expected),
                         sizeof(text) - 1);
        while (at < sizeof(text) - 1) {
            ptrdiff_t taken =
                lines_take(&sinks[1], &split, (const uint8_t *)text + at,
                           sizeof(text) - 1 - at, false, "", &out, 26);

            assert_true(taken > 0);
            at += (size_t)taken;
        }
        assert_int_equal(out.len, expected.len);
        assert_memory_equal(out.data, expected.data, out.len);
        buf_destroy(&out);
        buf_destroy(&expected);
    }
}

/* --- last lines --------------------------------------------------------- */

static void add(struct last_lines *last, const char *text)
{
    last_lines_add(last, (const uint8_t *)text, strlen(text));
}

static void the_last_lines_are_what_a_screen_shows(void **state)
{
    struct last_lines last = { 0 };
    struct buf out = { 0 };

    (void)state;
    assert_int_equal(last_lines_print(&last, 3, "  ", &out), 0);
    add(&last, "one\ntwo\n");
    add(&last, "three\n10%\r20%\r30%\r\n");
    add(&last, "\x1b[31mred\x1b[0m\a\tx");
    assert_int_equal(last_lines_print(&last, 3, "  ", &out), 3);
    assert_out(&out, "  three\n  30%\n  red\tx\n");
    assert_int_equal(last_lines_print(&last, 99, "", &out), 5);
    assert_out(&out, "one\ntwo\nthree\n30%\nred\tx\n");
    last_lines_destroy(&last);
    buf_destroy(&out);
}

static void the_last_lines_survive_a_flood(void **state)
{
    struct last_lines last = { 0 };
    struct buf out = { 0 };
    char line[64];
    int i;

    (void)state;
    for (i = 0; i < 5000; i++) {
        (void)snprintf(line, sizeof(line), "line %d\n", i);
        add(&last, line);
    }
    assert_int_equal(last_lines_print(&last, 2, "", &out), 2);
    assert_out(&out, "line 4998\nline 4999\n");
    for (i = 0; i < 2000; i++) {
        add(&last, "0123456789");
    }
    assert_int_equal(last_lines_print(&last, 2, "", &out), 1);
    assert_true(out.len <= LAST_LINES_WIDTH + 6);
    assert_memory_equal(out.data + out.len - 5, " ...\n", 5);
    last_lines_destroy(&last);
    buf_destroy(&out);
}

/* --- filters ------------------------------------------------------------ */

static void filters_pick_lines(void **state)
{
    char path[] = "/tmp/flaunch-filter.XXXXXX";
    struct log_filter filter;
    char text[200] = "";
    int fd = mkstemp(path);
    ssize_t n;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(log_filter_open(&filter, "a,,b,zz", path), 0);
    log_filter_write(&filter, "[0]:", 4, (const uint8_t *)"a\na,b\nzz\nlast",
                     13);
    log_filter_close(&filter);
    assert_int_equal(log_filter_open(&filter, "", path), 0);
    log_filter_write(&filter, "", 0, (const uint8_t *)"any\n", 4);
    log_filter_close(&filter);
    n = read(fd, text, sizeof(text) - 1);
    assert_true(n > 0);
    assert_string_equal(text, "[0]:a,b\n[0]:zz\nany\n");
    (void)close(fd);
    (void)unlink(path);
}

/* --- directories -------------------------------------------------------- */

/* A round that is no restart has the number of the last one. */
static void an_attempt_never_shares_a_directory(void **state)
{
    char base[] = "/tmp/flaunch-logs.XXXXXX";
    struct log_dir dir = { 0 };
    char *first;
    char *path;
    struct err err;

    (void)state;
    assert_non_null(mkdtemp(base));
    assert_int_equal(log_dir_make(base, "a/b", &dir, &err), 0);
    assert_non_null(strstr(dir.run, "/a_b_"));
    assert_int_equal(log_dir_attempt(&dir, 0, 1, &err), 0);
    path = log_dir_path(&dir, 0, "stdout.log");
    assert_non_null(path);
    assert_int_equal(log_dir_file(path, &err), 0);
    assert_int_equal(log_dir_file(path, &err), -EEXIST);
    first = strdup(dir.attempt);
    assert_non_null(first);
    assert_int_equal(log_dir_attempt(&dir, 0, 1, &err), 0);
    assert_memory_equal(dir.attempt, first, strlen(first));
    assert_string_equal(dir.attempt + strlen(first), ".1");
    assert_int_equal(unlink(path), 0);
    log_dir_end(&dir); /* nothing was written: nothing stays */
    assert_int_equal(access(first, F_OK), -1);
    free(path);
    /* What we made on the way goes too, and what was there does not. */
    assert_true(asprintf(&path, "%s/x/y", base) > 0);
    assert_int_equal(log_dir_make(path, "id", &dir, &err), 0);
    assert_int_equal(access(path, F_OK), 0);
    log_dir_end(&dir);
    assert_int_equal(rmdir(base), 0);
    free(path);
    free(first);
}

/* --- the queue ---------------------------------------------------------- */

static void count_event(void *arg)
{
    (*(volatile int *)arg)++;
}

static void say(struct output *output, const char *text, bool want_room)
{
    size_t room;
    struct buf *queue = output_lock(output, OUTPUT_MAX, &room);

    assert_int_equal(buf_append(queue, text, strlen(text)), 0);
    assert_int_equal(output_unlock(output, want_room), 0);
}

static void a_stalled_reader_stops_only_the_thread(void **state)
{
    static char chunk[OUTPUT_MAX + 1];
    volatile int n_events = 0;
    struct output output;
    struct buf got = { 0 };
    size_t room;
    int fds[2];

    (void)state;
    memset(chunk, 'c', sizeof(chunk) - 1);
    assert_int_equal(pipe(fds), 0);
    /* As an inherited one may come. */
    assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
    output_init(&output, fds[1], count_event, (void *)(uintptr_t)&n_events);
    (void)output_lock(&output, OUTPUT_MAX, &room);
    assert_int_equal(room, OUTPUT_MAX);
    assert_int_equal(output_unlock(&output, false), 0);
    assert_false(output.started);
    say(&output, chunk, false);
    say(&output, "end", true); /* what must be said exceeds the room */
    (void)output_lock(&output, OUTPUT_MAX, &room);
    assert_int_equal(output_unlock(&output, true), 0);
    assert_true(room < OUTPUT_MAX);
    while (got.len < OUTPUT_MAX + 3) {
        char part[5000];
        ssize_t n = read(fds[0], part, sizeof(part));

        assert_true(n > 0);
        assert_int_equal(buf_append(&got, part, (size_t)n), 0);
    }
    assert_memory_equal(got.data + got.len - 4, "cend", 4);
    output_end(&output, true);
    assert_true(n_events > 0);
    assert_int_equal(fcntl(fds[1], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    (void)close(fds[0]);
    (void)close(fds[1]);
    buf_destroy(&got);
}

static void a_full_disk_is_told_and_survived(void **state)
{
    uint64_t deadline_ms = clock_deadline(60000);
    volatile int n_events = 0;
    struct output output;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    output_init(&output, fd, count_event, (void *)(uintptr_t)&n_events);
    say(&output, "lost", false);
    while (output_status(&output).lost == 0 && clock_ms() < deadline_ms) {
        clock_sleep_ms(1);
    }
    say(&output, "lost again", false);
    assert_int_equal(output_status(&output).error, ENOSPC);
    output_end(&output, true);
    assert_int_equal(output.status.lost, 14);
    assert_int_equal(output.status.written, 0);
    assert_int_equal(n_events, 1);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redirects_and_tees_are_read),
        cmocka_unit_test(a_filter_may_name_ranks_that_are_not_there),
        cmocka_unit_test(streams_follow_what_ours_are),
        cmocka_unit_test(what_is_hidden_is_still_read),
        cmocka_unit_test(prefixes_are_filled_in),
        cmocka_unit_test(only_whole_lines_go_out),
        cmocka_unit_test(each_line_has_its_header),
        cmocka_unit_test(a_long_line_goes_out_in_marked_pieces),
        cmocka_unit_test(little_room_only_makes_it_slower),
        cmocka_unit_test(the_last_lines_are_what_a_screen_shows),
        cmocka_unit_test(the_last_lines_survive_a_flood),
        cmocka_unit_test(filters_pick_lines),
        cmocka_unit_test(an_attempt_never_shares_a_directory),
        cmocka_unit_test(a_stalled_reader_stops_only_the_thread),
        cmocka_unit_test(a_full_disk_is_told_and_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
