#include "common/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUF_FIRST_CAP 64

int buf_reserve(struct buf *buf, size_t extra)
{
    size_t cap = buf->cap != 0 ? buf->cap : BUF_FIRST_CAP;
    uint8_t *data;

    if (buf->cap - buf->len >= extra) {
        return 0;
    }
    if (extra > SIZE_MAX / 4 || buf->len > SIZE_MAX / 4) {
        return -ENOMEM;
    }
    while (cap - buf->len < extra) {
        cap *= 2;
    }
    data = realloc(buf->data, cap);
    if (data == NULL) {
        return -ENOMEM;
    }
    buf->data = data;
    buf->cap = cap;
    return 0;
}

int buf_append(struct buf *buf, const void *data, size_t len)
{
    int rc;

    if (len == 0) {
        return 0;
    }
    rc = buf_reserve(buf, len);
    if (rc < 0) {
        return rc;
    }
    memcpy(buf->data + buf->len, data, len);
    buf->len += len;
    return 0;
}

int buf_append_u8(struct buf *buf, uint8_t value)
{
    return buf_append(buf, &value, sizeof(value));
}

int buf_append_u32(struct buf *buf, uint32_t value)
{
    uint8_t raw[4];

    le_put_u32(raw, value);
    return buf_append(buf, raw, sizeof(raw));
}

int buf_append_u64(struct buf *buf, uint64_t value)
{
    uint8_t raw[8];

    le_put_u64(raw, value);
    return buf_append(buf, raw, sizeof(raw));
}

void buf_consume(struct buf *buf, size_t len)
{
    assert(len <= buf->len);
    if (len == 0) {
        return;
    }
    buf->len -= len;
    if (buf->len > 0) {
        memmove(buf->data, buf->data + len, buf->len);
    }
}

void buf_destroy(struct buf *buf)
{
    if (buf == NULL) {
        return;
    }
    free(buf->data);
    *buf = (struct buf){ 0 };
}

/* The next len bytes, or NULL and the reader is bad from then on. */
static const uint8_t *reader_take(struct reader *reader, size_t len)
{
    const uint8_t *p;

    if (reader->bad || len > reader->len - reader->pos) {
        reader->bad = true;
        return NULL;
    }
    p = reader->data + reader->pos;
    reader->pos += len;
    return p;
}

uint8_t reader_u8(struct reader *reader)
{
    const uint8_t *p = reader_take(reader, 1);

    return p != NULL ? *p : 0;
}

uint32_t reader_u32(struct reader *reader)
{
    const uint8_t *p = reader_take(reader, 4);

    return p != NULL ? le_u32(p) : 0;
}

uint64_t reader_u64(struct reader *reader)
{
    const uint8_t *p = reader_take(reader, 8);

    return p != NULL ? le_u64(p) : 0;
}

struct bytes reader_bytes(struct reader *reader, size_t len)
{
    const uint8_t *p = reader_take(reader, len);

    return (struct bytes){ .data = p, .len = p != NULL ? len : 0 };
}
