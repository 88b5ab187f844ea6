#include "common/error_file.h"

#include "common/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REPLACEMENT 0xfffdU

/*
 * One character of UTF-8 at text: its code point, and how many bytes it takes.
 * What is none takes one byte and counts as U+FFFD.
 */
static uint32_t take_character(const unsigned char *text, size_t *len_out)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t len = text[0] < 0x80   ? 1
                 : text[0] < 0xc0 ? 0
                 : text[0] < 0xe0 ? 2
                 : text[0] < 0xf0 ? 3
                 : text[0] < 0xf8 ? 4
                                  : 0;
    uint32_t code = len == 1 ? text[0] : text[0] & (0x7fU >> len);
    size_t i;

    for (i = 1; i < len; i++) {
        if ((text[i] & 0xc0) != 0x80) { /* also at the end of the text */
            len = 0;
            break;
        }
        code = code << 6 | (text[i] & 0x3fU);
    }
    if (len == 0 || code < least[len] || code > 0x10ffff ||
        (code >= 0xd800 && code <= 0xdfff)) {
        *len_out = 1;
        return REPLACEMENT;
    }
    *len_out = len;
    return code;
}

static int put_character(struct buf *out, uint32_t code)
{
    char text[16];

    if (code == '"' || code == '\\') {
        (void)snprintf(text, sizeof(text), "\\%c", (char)code);
    } else if (code >= 0x20 && code < 0x7f) {
        (void)snprintf(text, sizeof(text), "%c", (char)code);
    } else if (code < 0x10000) {
        (void)snprintf(text, sizeof(text), "\\u%04x", code);
    } else {
        code -= 0x10000;
        (void)snprintf(text, sizeof(text), "\\u%04x\\u%04x",
                       0xd800 + (code >> 10), 0xdc00 + (code & 0x3ff));
    }
    return buf_append(out, text, strlen(text));
}

int error_file_put_text(struct buf *out, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    int rc = buf_append_u8(out, '"');

    while (*at != '\0' && rc == 0) {
        size_t len;

        rc = put_character(out, take_character(at, &len));
        at += len;
    }
    return rc == 0 ? buf_append_u8(out, '"') : rc;
}

int error_file_replace(const char *path, const void *data, size_t len,
                       struct err *err)
{
    char *aside = NULL;
    int fd;
    int rc;

    if (asprintf(&aside, "%s.%ld", path, (long)getpid()) < 0) {
        return err_sys(err, -ENOMEM, "cannot write error file '%s'", path);
    }
    fd = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        rc = err_sys(err, -errno, "cannot write error file '%s'", path);
        goto out;
    }
    rc = io_write_all(fd, data, len);
    if (close(fd) < 0 && rc == 0) {
        rc = -errno;
    }
    if (rc == 0 && rename(aside, path) < 0) {
        rc = -errno;
    }
    if (rc < 0) {
        (void)unlink(aside);
        (void)err_sys(err, rc, "cannot write error file '%s'", path);
    }
out:
    free(aside);
    return rc;
}

int error_file_write(const char *path, const char *message, struct err *err)
{
    static const char begin[] = "{\"message\": {\"message\": ";
    char end[96];
    struct buf out = { 0 };
    int rc;

    (void)snprintf(end, sizeof(end),
                   ", \"extraInfo\": {\"timestamp\": \"%lld\"}}}",
                   (long long)time(NULL));
    rc = buf_append(&out, begin, sizeof(begin) - 1);
    if (rc == 0) {
        rc = error_file_put_text(&out, message);
    }
    if (rc == 0) {
        rc = buf_append(&out, end, strlen(end));
    }
    rc = rc == 0 ? error_file_replace(path, out.data, out.len, err)
                 : err_sys(err, rc, "cannot write error file '%s'", path);
    buf_destroy(&out);
    return rc;
}
