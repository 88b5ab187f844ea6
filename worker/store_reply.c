#include "worker/store_reply.h"

#include "common/store_proto.h"

#include <errno.h>

void store_reply_begin(struct store_reply *reply, enum store_reply_kind kind,
                       uint64_t n_strings)
{
    *reply = (struct store_reply){ .kind = kind,
                                   .n_strings = n_strings,
                                   .n_left = n_strings,
                                   .have_number = kind == STORE_REPLY_STRINGS };
}

static int take_code(struct store_reply *reply, const uint8_t *data, size_t len)
{
    if (len < 1) {
        return 0;
    }
    if (data[0] > 1) {
        return -EPROTO;
    }
    reply->number = data[0];
    reply->pos = 1;
    if (reply->kind == STORE_REPLY_CODE || data[0] == STORE_WAIT_CANCELED) {
        return 1;
    }
    if (len < 2) {
        return 0;
    }
    reply->number = data[1];
    reply->pos = 2;
    return data[1] == STORE_WAIT_CANCELED ? 1 : -EPROTO;
}

/* The number in front, and what it says of strings. */
static int take_number(struct store_reply *reply, const uint8_t *data,
                       size_t len)
{
    if (reply->kind == STORE_REPLY_U32) {
        if (len < 4) {
            return 0;
        }
        reply->number = le_u32(data);
        reply->pos = 4;
        reply->have_number = true;
        return 1;
    }
    if (len < 8) {
        return 0;
    }
    reply->number = (int64_t)le_u64(data);
    reply->pos = 8;
    reply->first = 8;
    reply->have_number = true;
    if (reply->kind == STORE_REPLY_NUMBER) {
        return 1;
    }
    if (reply->number < 0) {
        return -EPROTO;
    }
    reply->n_strings = (uint64_t)reply->number;
    if (reply->kind == STORE_REPLY_POP && reply->number > 0) {
        reply->n_strings = 1;
    }
    reply->n_left = reply->n_strings;
    return 1;
}

/* A length in front of each. */
static int take_strings(struct store_reply *reply, const uint8_t *data,
                        size_t len)
{
    while (reply->n_left > 0) {
        uint64_t size;

        if (len - reply->pos < 8) {
            return 0;
        }
        size = le_u64(data + reply->pos);
        if (size > STORE_REPLY_MAX - 8 - reply->pos) {
            return -EMSGSIZE;
        }
        if (len - reply->pos - 8 < size) {
            return 0;
        }
        reply->pos += 8 + (size_t)size;
        reply->n_left--;
        if (reply->pos > STORE_REPLY_MAX - 8) {
            return -EMSGSIZE;
        }
    }
    return 1;
}

int store_reply_next(struct store_reply *reply, const uint8_t *data, size_t len)
{
    if (reply->kind == STORE_REPLY_CODE ||
        reply->kind == STORE_REPLY_CANCELED) {
        return take_code(reply, data, len);
    }
    if (!reply->have_number) {
        int rc = take_number(reply, data, len);

        if (rc <= 0) {
            return rc;
        }
    }
    return take_strings(reply, data, len);
}

struct bytes store_reply_string(const uint8_t *data, size_t *at)
{
    struct bytes string = { .data = data + *at + 8,
                            .len = (size_t)le_u64(data + *at) };

    *at += 8 + string.len;
    return string;
}
