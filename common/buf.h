/*
 * Growable bytes, and a bounded reader that cannot run past its end.
 *
 * All integers on our wires are little-endian.
 */
#ifndef FLAUNCH_COMMON_BUF_H
#define FLAUNCH_COMMON_BUF_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Borrowed bytes; never a C string. */
struct bytes {
    const uint8_t *data;
    size_t len;
};

/* Zero-initialise to use; data is NULL while cap is 0. */
struct buf {
    uint8_t *data;
    size_t len;
    size_t cap;
};

/* Room for extra more bytes: 0 or -ENOMEM, and then buf is unchanged. */
int buf_reserve(struct buf *buf, size_t extra);

/* Append bytes: 0 or -ENOMEM, and then buf is unchanged. */
int buf_append(struct buf *buf, const void *data, size_t len);
int buf_append_u8(struct buf *buf, uint8_t value);
int buf_append_u32(struct buf *buf, uint32_t value);
int buf_append_u64(struct buf *buf, uint64_t value);

/* Drop the first len bytes; len must not exceed buf->len. */
void buf_consume(struct buf *buf, size_t len);

/* Free the memory and leave an empty buf; buf may be NULL. */
void buf_destroy(struct buf *buf);

/*
 * Reads from data[0..len). The first read that does not fit sets bad, and
 * every later read then gives 0 or an empty span: check bad once at the end.
 */
struct reader {
    const uint8_t *data;
    size_t len;
    size_t pos;
    bool bad;
};

uint8_t reader_u8(struct reader *reader);
uint32_t reader_u32(struct reader *reader);
uint64_t reader_u64(struct reader *reader);
struct bytes reader_bytes(struct reader *reader, size_t len);

/* Decode little-endian integers at p, which must hold 4 or 8 bytes. */
static inline uint32_t le_u32(const uint8_t *p)
{
    uint32_t value;

    memcpy(&value, p, sizeof(value));
    return le32toh(value);
}

static inline uint64_t le_u64(const uint8_t *p)
{
    uint64_t value;

    memcpy(&value, p, sizeof(value));
    return le64toh(value);
}

/* Encode at p. */
static inline void le_put_u32(uint8_t *p, uint32_t value)
{
    value = htole32(value);
    memcpy(p, &value, sizeof(value));
}

static inline void le_put_u64(uint8_t *p, uint64_t value)
{
    value = htole64(value);
    memcpy(p, &value, sizeof(value));
}

#endif
