/*
 * The small parts everybody uses: errors, bytes, parsing, clock.
 */
#include "common/log_limit.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/parse.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

static void a_sentence_is_kept_with_its_code(void **state)
{
    struct err err = { 0 };

    (void)state;
    assert_int_equal(err_set(&err, -EINVAL, "no %s", "port"), -EINVAL);
    assert_string_equal(err.text, "no port");
    assert_int_equal(err.code, -EINVAL);
    assert_int_equal(err_sys(&err, -ENOENT, "open %d", 3), -ENOENT);
    assert_string_equal(err.text, "open 3: No such file or directory");
    assert_int_equal(err_set(NULL, -EINVAL, "nobody reads this"), -EINVAL);
}

static void a_long_sentence_is_cut(void **state)
{
    struct err err = { 0 };
    char text[2 * ERR_TEXT_MAX];

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(err_sys(&err, -EIO, "%s", text), -EIO);
    assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1);
}

static void bytes_grow_and_are_consumed(void **state)
{
    struct buf buf = { 0 };
    int i;

    (void)state;
    for (i = 0; i < 1000; i++) {
        assert_int_equal(buf_append_u32(&buf, (uint32_t)i), 0);
    }
    assert_int_equal(buf.len, 4000);
    buf_consume(&buf, 40);
    assert_int_equal(le_u32(buf.data), 10);
    buf_consume(&buf, buf.len);
    assert_int_equal(buf.len, 0);
    assert_int_equal(buf_reserve(&buf, SIZE_MAX), -ENOMEM);
    buf_destroy(&buf);
    buf_destroy(NULL);
}

static void integers_are_little_endian(void **state)
{
    struct buf buf = { 0 };
    static const uint8_t wanted[] = { 1, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 128 };

    (void)state;
    assert_int_equal(buf_append_u8(&buf, 1), 0);
    assert_int_equal(buf_append_u32(&buf, 2), 0);
    assert_int_equal(buf_append_u64(&buf, 0x8000000000000003U), 0);
    assert_int_equal(buf.len, sizeof(wanted));
    assert_memory_equal(buf.data, wanted, sizeof(wanted));
    buf_destroy(&buf);
}

static void a_reader_never_passes_its_end(void **state)
{
    static const uint8_t data[] = { 1, 2, 3 };
    struct reader reader = { .data = data, .len = sizeof(data) };
    struct bytes rest;

    (void)state;
    assert_int_equal(reader_u8(&reader), 1);
    rest = reader_bytes(&reader, 2);
    assert_int_equal(rest.len, 2);
    assert_false(reader.bad);
    assert_int_equal(reader_u8(&reader), 0);
    assert_true(reader.bad);
    reader = (struct reader){ .data = data, .len = sizeof(data) };
    assert_int_equal(reader_u64(&reader), 0);
    assert_true(reader.bad);
    assert_int_equal(reader_u8(&reader), 0); /* and stays so */
    assert_int_equal(reader_bytes(&reader, SIZE_MAX).len, 0);
}

static void integers_are_read_strictly(void **state)
{
    static const struct {
        const char *text;
        int rc;
        int64_t value;
    } rows[] = {
        { "0", 0, 0 },
        { "-0", 0, 0 },
        { "42", 0, 42 },
        { "-42", 0, -42 },
        { "007", 0, 7 },
        { "9223372036854775807", 0, INT64_MAX },
        { "-9223372036854775808", 0, INT64_MIN },
        { "9223372036854775808", -ERANGE, 0 },
        { "-9223372036854775809", -ERANGE, 0 },
        { "99999999999999999999999999", -ERANGE, 0 },
        { "", -EINVAL, 0 },
        { "-", -EINVAL, 0 },
        { "+1", -EINVAL, 0 },
        { " 1", -EINVAL, 0 },
        { "1 ", -EINVAL, 0 },
        { "0x10", -EINVAL, 0 },
        { "1e3", -EINVAL, 0 },
        { "99999999999999999999999999x", -EINVAL, 0 },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t value = -7;

        assert_int_equal(parse_int(rows[i].text, INT64_MIN, INT64_MAX, &value),
                         rows[i].rc);
        assert_true(value == (rows[i].rc == 0 ? rows[i].value : -7));
    }
}

static void integers_have_bounds(void **state)
{
    int64_t value = 0;

    (void)state;
    assert_int_equal(parse_int("5", 1, 5, &value), 0);
    assert_int_equal(parse_int("6", 1, 5, &value), -ERANGE);
    assert_int_equal(parse_int("0", 1, 5, &value), -ERANGE);
    assert_int_equal(value, 5);
}

static void seconds_are_read_strictly(void **state)
{
    static const struct {
        const char *text;
        int rc;
        uint64_t ms;
    } rows[] = {
        { "0", 0, 0 },         { "30", 0, 30000 },
        { "1.5", 0, 1500 },    { ".25", 0, 250 },
        { "2.", 0, 2000 },     { "0.0019", 0, 1 },
        { "", -EINVAL, 0 },    { ".", -EINVAL, 0 },
        { "-1", -EINVAL, 0 },  { "1s", -EINVAL, 0 },
        { "nan", -EINVAL, 0 }, { "99999999999999999999", -ERANGE, 0 },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t ms = 7;

        assert_int_equal(parse_seconds(rows[i].text, &ms), rows[i].rc);
        assert_true(ms == (rows[i].rc == 0 ? rows[i].ms : 7));
    }
}

static void lists_give_every_item(void **state)
{
    const char *cursor = " a, ,bc";
    const char *item;
    size_t len;

    (void)state;
    assert_true(parse_list_next(&cursor, &item, &len));
    assert_int_equal(len, 1);
    assert_memory_equal(item, "a", 1);
    assert_true(parse_list_next(&cursor, &item, &len));
    assert_int_equal(len, 0);
    assert_true(parse_list_next(&cursor, &item, &len));
    assert_int_equal(len, 2);
    assert_memory_equal(item, "bc", 2);
    assert_false(parse_list_next(&cursor, &item, &len));
}

static void hosts_and_ports_are_told_apart(void **state)
{
    char host[16];
    uint16_t port = 0;

    (void)state;
    assert_int_equal(parse_host_port("node1:29500", host, sizeof(host), &port),
                     0);
    assert_string_equal(host, "node1");
    assert_int_equal(port, 29500);
    assert_int_equal(parse_host_port("[::1]:80", host, sizeof(host), &port), 0);
    assert_string_equal(host, "::1");
    assert_int_equal(parse_host_port("::1:80", host, sizeof(host), &port),
                     -EINVAL);
    assert_int_equal(parse_host_port("node1", host, sizeof(host), &port),
                     -EINVAL);
    assert_int_equal(parse_host_port(":80", host, sizeof(host), &port),
                     -EINVAL);
    assert_int_equal(parse_host_port("a:0", host, sizeof(host), &port),
                     -EINVAL);
    assert_int_equal(parse_host_port("a.very.long.name.of.a.host:1", host,
                                     sizeof(host), &port),
                     -ERANGE);
}

static void deadlines_end_and_never_overflow(void **state)
{
    (void)state;
    assert_int_equal(clock_poll_ms(0), 0);
    assert_int_equal(clock_poll_ms(CLOCK_NEVER), -1);
    assert_true(clock_deadline(CLOCK_NEVER) == CLOCK_NEVER);
    assert_int_equal(clock_poll_ms(CLOCK_NEVER - 1), INT_MAX);
    assert_in_range(clock_poll_ms(clock_deadline(5000)), 1, 5000);
}

static void what_is_said_often_is_said_seldom(void **state)
{
    struct log_limit limit = { 0 };
    size_t n_left_out;
    int n_said = 0;
    int i;

    (void)state;
    for (i = 0; i < 100; i++) {
        n_said += log_limit_take(&limit, 1000, &n_left_out);
        assert_int_equal(n_left_out, 0);
    }
    assert_int_equal(n_said, LOG_LIMIT_LINES);
    assert_false(log_limit_take(&limit, 1000 + LOG_LIMIT_MS - 1, &n_left_out));
    assert_true(log_limit_take(&limit, 1000 + LOG_LIMIT_MS, &n_left_out));
    assert_int_equal(n_left_out, 101 - LOG_LIMIT_LINES);
    assert_true(log_limit_take(&limit, 1000 + LOG_LIMIT_MS, &n_left_out));
    assert_int_equal(n_left_out, 0);
}

static void sizes_have_units(void **state)
{
    static const struct {
        const char *text;
        int rc;
        uint64_t bytes;
    } rows[] = {
        { "8192", 0, 8192 },
        { "8K", 0, 8192 },
        { "2M", 0, 2097152 },
        { "1G", 0, 1073741824 },
        { "", -EINVAL, 0 },
        { "K", -EINVAL, 0 },
        { "8k", -EINVAL, 0 },
        { "8KB", -EINVAL, 0 },
        { "1.5M", -EINVAL, 0 },
        { "-1", -EINVAL, 0 },
        { "5", -ERANGE, 0 },
        { "3G", -ERANGE, 0 },
        { "9223372036854775807G", -ERANGE, 0 },
        { "99999999999999999999999", -EINVAL, 0 },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t bytes = 0;

        assert_int_equal(parse_size(rows[i].text, 10, 2147483648, &bytes),
                         rows[i].rc);
        assert_true(bytes == rows[i].bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_often_is_said_seldom),
        cmocka_unit_test(sizes_have_units),
        cmocka_unit_test(a_sentence_is_kept_with_its_code),
        cmocka_unit_test(a_long_sentence_is_cut),
        cmocka_unit_test(bytes_grow_and_are_consumed),
        cmocka_unit_test(integers_are_little_endian),
        cmocka_unit_test(a_reader_never_passes_its_end),
        cmocka_unit_test(integers_are_read_strictly),
        cmocka_unit_test(integers_have_bounds),
        cmocka_unit_test(seconds_are_read_strictly),
        cmocka_unit_test(lists_give_every_item),
        cmocka_unit_test(hosts_and_ports_are_told_apart),
        cmocka_unit_test(deadlines_end_and_never_overflow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
