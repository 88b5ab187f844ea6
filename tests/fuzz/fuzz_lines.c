/*
 * Lines on their way to the screen: fed whole and in pieces, with much room
 * and little, the same bytes come out; and what is read of -r, -t, filters and
 * prefixes stays within bounds.
 */
#include "launcher/last_lines.h"
#include "launcher/lines.h"
#include "launcher/log_prefix.h"
#include "launcher/log_spec.h"
#include "tests/fuzz/fuzz.h"

#include <stdbool.h>

#define ROOM (LINES_MAX + LINES_HEADER_MAX)

/* Pass on data in steps of step bytes, as pipes bring it. */
static void pass(const uint8_t *data, size_t len, size_t step, size_t room,
                 const char *header, struct buf *out)
{
    struct line_source source = { .header = header,
                                  .header_len = strlen(header) };
    struct line_sink sink = { 0 };
    size_t start = 0;
    size_t end = 0;

    while (start < len) {
        bool final;
        ptrdiff_t n;

        end = end + step < len ? end + step : len;
        final = end == len;
        n = lines_take(&sink, &source, data + start, end - start, final, "",
                       out, room);
        CHECK(n >= 0 && (size_t)n <= end - start);
        CHECK(!final || n > 0);
        start += (size_t)n;
    }
}

static void check_lines(const uint8_t *data, size_t size)
{
    static const char *const headers[] = { "", "[default0]:" };
    size_t step = size > 0 ? 1U + data[0] : 1;
    size_t k;

    /* A cut depends on how it comes; within the limit nothing does. */
    for (k = 0; k < 2 && size < LINES_MAX; k++) {
        struct buf whole = { 0 };
        struct buf split = { 0 };

        pass(data, size, size > 0 ? size : 1, ROOM + size, headers[k], &whole);
        pass(data, size, step, ROOM, headers[k], &split);
        CHECK(whole.len == split.len);
        CHECK(whole.len == 0 || memcmp(whole.data, split.data, whole.len) == 0);
        CHECK(headers[k][0] != '\0' || whole.len == size);
        buf_destroy(&whole);
        buf_destroy(&split);
    }
}

static void check_texts(const char *text)
{
    static const struct log_prefix_values values = { .role_name = "role",
                                                     .host = "host" };
    uint8_t what[5];
    bool shown[5];
    char prefix[40];

    if (log_spec_parse("tee", text, 5, what, NULL) == 0) {
        CHECK(what[0] <= 3 && what[4] <= 3);
    }
    (void)log_filter_parse(text, 5, shown, NULL);
    CHECK(log_prefix_fill(text, &values, prefix, sizeof(prefix)) <
          sizeof(prefix));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct last_lines last = { 0 };
    struct buf out = { 0 };

    check_lines(data, size);
    check_texts(text);
    last_lines_add(&last, data, size);
    CHECK(last_lines_print(&last, 20, "  ", &out) <= 20);
    last_lines_destroy(&last);
    buf_destroy(&out);
    free(text);
    return 0;
}
