#include "launcher/lines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Where the last \n or \r of data[0..len) ends; 0: there is none. */
static size_t last_end(const uint8_t *data, size_t len)
{
    const uint8_t *nl = memrchr(data, '\n', len);
    const uint8_t *after = nl != NULL ? nl + 1 : data;
    const uint8_t *cr = memrchr(after, '\r', (size_t)(data + len - after));

    if (cr != NULL) {
        return (size_t)(cr - data) + 1;
    }
    return (size_t)(after - data);
}

/* Where the first piece ends; \r\n is one end. 0: it does not. */
static size_t first_end(const uint8_t *data, size_t len)
{
    const uint8_t *nl = memchr(data, '\n', len);
    size_t until = nl != NULL ? (size_t)(nl - data) : len;
    const uint8_t *cr = memchr(data, '\r', until);

    if (cr != NULL && cr + 1 != nl) {
        return (size_t)(cr - data) + 1;
    }
    return nl != NULL ? until + 1 : 0;
}

/* A place to cut within max bytes that does not split a UTF-8 character. */
static size_t cut_at(const uint8_t *data, size_t max)
{
    size_t at = max;

    while (at > max - 4 && (data[at] & 0xc0) == 0x80) {
        at--;
    }
    return at > max - 4 ? at : max;
}

/* Append one piece, what belongs before it and behind it. */
static int put_piece(struct line_sink *sink, struct line_source *source,
                     const uint8_t *data, size_t len, const char *stamp,
                     bool cut, struct buf *out)
{
    bool goes_on = sink->mid_line && sink->last == source;
    bool only_newline = data[0] == '\n' && source->after_cr;
    size_t stamp_len = strlen(stamp);

    if (buf_reserve(out, len + stamp_len + source->header_len +
                             sizeof(LINES_CUT) + 1) < 0) {
        return -ENOMEM;
    }
    if (sink->mid_line && !goes_on) {
        (void)buf_append_u8(out, '\n');
    }
    if (!goes_on && !only_newline) {
        (void)buf_append(out, stamp, stamp_len);
        if (source->header_len > 0) {
            (void)buf_append(out, source->header, source->header_len);
        }
    }
    (void)buf_append(out, data, len);
    if (cut) {
        (void)buf_append(out, LINES_CUT, sizeof(LINES_CUT) - 1);
    }
    source->after_cr = data[len - 1] == '\r';
    sink->last = source;
    sink->mid_line = !cut && data[len - 1] != '\n' && data[len - 1] != '\r';
    return 0;
}

/* What goes out whole and alike: no header for each line. */
static bool is_plain(const struct line_source *source, const char *stamp)
{
    return source->header_len == 0 && stamp[0] == '\0';
}

/* How much of data makes the next piece, 0: it has to wait. */
static size_t next_piece(const struct line_source *source, const uint8_t *data,
                         size_t len, bool final, const char *stamp, size_t room,
                         bool *cut_out)
{
    size_t piece;

    *cut_out = false;
    if (is_plain(source, stamp)) {
        piece = last_end(data, len < room ? len : room);
    } else {
        piece = first_end(data, len);
    }
    if (len >= LINES_MAX && (piece == 0 || piece > LINES_MAX) &&
        first_end(data, LINES_MAX) == 0) {
        piece = cut_at(data, LINES_MAX - 1);
        *cut_out = true;
    } else if (piece == 0 && final) {
        piece = len;
    }
    return piece;
}

/*
 * Whole lines without \r, each behind its header: what nearly all output is,
 * so it has a loop of its own. How much of data was taken; 0: nothing of this
 * kind stands there.
 */
static size_t take_whole_lines(struct line_sink *sink,
                               struct line_source *source, const uint8_t *data,
                               size_t len, const char *stamp, struct buf *out,
                               size_t room)
{
    const uint8_t *end = memrchr(data, '\n', len);
    char before[LINES_HEADER_MAX];
    size_t before_len;
    size_t taken = 0;
    uint8_t *to;

    if (end == NULL || sink->mid_line || source->after_cr ||
        memchr(data, '\r', (size_t)(end - data)) != NULL ||
        buf_reserve(out, room) < 0) {
        return 0;
    }
    before_len = (size_t)snprintf(before, sizeof(before), "%s%s", stamp,
                                  source->header_len > 0 ? source->header : "");
    to = out->data + out->len;
    while (data + taken <= end) {
        const uint8_t *line = data + taken;
        size_t left = (size_t)(end + 1 - line);
        size_t n =
            (size_t)((const uint8_t *)memchr(line, '\n', left) + 1 - line);

        if (n > LINES_MAX || before_len + n > room) {
            break;
        }
        memcpy(to, before, before_len);
        memcpy(to + before_len, line, n);
        to += before_len + n;
        room -= before_len + n;
        taken += n;
    }
    out->len = (size_t)(to - out->data);
    sink->last = taken > 0 ? source : sink->last;
    return taken;
}

ptrdiff_t lines_take(struct line_sink *sink, struct line_source *source,
                     const uint8_t *data, size_t len, bool final,
                     const char *stamp, struct buf *out, size_t room)
{
    size_t extra = strlen(stamp) + source->header_len + sizeof(LINES_CUT) + 1;
    size_t before = out->len;
    size_t taken = 0;

    if (!is_plain(source, stamp)) {
        taken = take_whole_lines(sink, source, data, len, stamp, out, room);
    }
    while (taken < len) {
        size_t used = out->len - before;
        bool cut;
        size_t piece;

        if (used + extra >= room) {
            break;
        }
        piece = next_piece(source, data + taken, len - taken, final, stamp,
                           room - used - extra, &cut);
        if (piece == 0 || used + extra + piece > room) {
            break;
        }
        if (put_piece(sink, source, data + taken, piece, stamp, cut, out) < 0) {
            return -ENOMEM;
        }
        taken += piece;
    }
    return (ptrdiff_t)taken;
}

int lines_close(struct line_sink *sink, struct buf *out)
{
    int rc = sink->mid_line ? buf_append_u8(out, '\n') : 0;

    if (rc == 0) {
        sink->mid_line = false;
        sink->last = NULL;
    }
    return rc;
}
