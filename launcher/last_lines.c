#include "launcher/last_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void last_lines_add(struct last_lines *last, const uint8_t *data, size_t len)
{
    if (last->ring == NULL) {
        last->ring = malloc(LAST_LINES_BYTES);
        if (last->ring == NULL) {
            return;
        }
    }
    if (len > LAST_LINES_BYTES) {
        data += len - LAST_LINES_BYTES;
        len = LAST_LINES_BYTES;
    }
    last->len =
        last->len + len < LAST_LINES_BYTES ? last->len + len : LAST_LINES_BYTES;
    while (len > 0) {
        size_t room = LAST_LINES_BYTES - last->next;
        size_t n = len < room ? len : room;

        memcpy(last->ring + last->next, data, n);
        last->next = (last->next + n) % LAST_LINES_BYTES;
        data += n;
        len -= n;
    }
}

int last_lines_read(struct last_lines *last, int fd)
{
    uint8_t data[LAST_LINES_BYTES];
    struct stat status;
    off_t from;
    ssize_t n;

    if (fstat(fd, &status) < 0) {
        return -errno;
    }
    from = status.st_size > (off_t)sizeof(data)
               ? status.st_size - (off_t)sizeof(data)
               : 0;
    n = pread(fd, data, sizeof(data), from);
    if (n < 0) {
        return -errno;
    }
    last_lines_add(last, data, (size_t)n);
    return 0;
}

/* The length of a terminal's control sequence, ESC [ ... letter; else 0. */
static size_t sequence_len(const uint8_t *data, size_t len)
{
    size_t at = 2;

    if (len < 2 || data[0] != 0x1b || data[1] != '[') {
        return 0;
    }
    while (at < len && data[at] >= 0x20 && data[at] < 0x40) {
        at++;
    }
    return at < len ? at + 1 : at;
}

/* One line as a screen shows it. */
static int print_line(const uint8_t *data, size_t len, const char *indent,
                      struct buf *out)
{
    const uint8_t *cr;
    size_t shown = 0;
    size_t at = 0;

    while (len > 0 && data[len - 1] == '\r') {
        len--;
    }
    cr = len > 0 ? memrchr(data, '\r', len) : NULL;
    if (cr != NULL) {
        len -= (size_t)(cr + 1 - data);
        data = cr + 1;
    }
    if (buf_append(out, indent, strlen(indent)) < 0 ||
        buf_reserve(out, len + 8) < 0) {
        return -ENOMEM;
    }
    while (at < len && shown < LAST_LINES_WIDTH) {
        size_t skip = sequence_len(data + at, len - at);

        if (skip == 0 && (data[at] >= 0x20 || data[at] == '\t') &&
            data[at] != 0x7f) {
            (void)buf_append_u8(out, data[at]);
            shown++;
        }
        at += skip > 0 ? skip : 1;
    }
    return buf_append(out, at < len ? " ...\n" : "\n", at < len ? 5 : 1);
}

/* Where the last n lines of data begin. */
static size_t lines_start(const uint8_t *data, size_t len, size_t n)
{
    size_t at = len;

    if (at > 0 && data[at - 1] == '\n') {
        at--;
    }
    while (at > 0) {
        if (data[at - 1] == '\n' && --n == 0) {
            return at;
        }
        at--;
    }
    return 0;
}

int last_lines_print(const struct last_lines *last, size_t n_lines,
                     const char *indent, struct buf *out)
{
    uint8_t data[LAST_LINES_BYTES];
    size_t oldest = last->len < LAST_LINES_BYTES ? 0 : last->next;
    size_t at;
    int n = 0;

    if (last->len == 0) {
        return 0;
    }
    memcpy(data, last->ring + oldest, last->len - oldest);
    memcpy(data + last->len - oldest, last->ring, oldest);
    at = lines_start(data, last->len, n_lines);
    if (at == 0 && last->len == LAST_LINES_BYTES) {
        /* The first line has lost its beginning; show it if it is all. */
        const uint8_t *nl = memchr(data, '\n', last->len - 1);

        at = nl != NULL ? (size_t)(nl + 1 - data) : 0;
    }
    while (at < last->len) {
        const uint8_t *nl = memchr(data + at, '\n', last->len - at);
        size_t end = nl != NULL ? (size_t)(nl - data) : last->len;

        if (print_line(data + at, end - at, indent, out) < 0) {
            return -ENOMEM;
        }
        at = end + 1;
        n++;
    }
    return n;
}

void last_lines_destroy(struct last_lines *last)
{
    free(last->ring);
    *last = (struct last_lines){ 0 };
}
