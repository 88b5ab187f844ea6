/*
 * What a store answers: a reply has no header, so it is read by what was asked.
 * No I/O; bytes of a stranger.
 */
#ifndef FLAUNCH_WORKER_STORE_REPLY_H
#define FLAUNCH_WORKER_STORE_REPLY_H

#include "common/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One reply, all in all. Memory follows the bytes that came, not a length. */
#define STORE_REPLY_MAX ((size_t)1024 * 1024 * 1024)

enum store_reply_kind {
    STORE_REPLY_CODE,     /* one byte, 0 or 1: number */
    STORE_REPLY_CANCELED, /* 1, or 0 and 1, where the wait had just ended */
    STORE_REPLY_U32,      /* PING: number */
    STORE_REPLY_NUMBER,   /* i64 */
    STORE_REPLY_STRINGS,  /* as many as were asked for */
    STORE_REPLY_LIST,     /* how many, and as many strings */
    STORE_REPLY_POP,      /* i64, and a string if it is not 0 */
};

/* Remembers how far a reply has been read. */
struct store_reply {
    enum store_reply_kind kind;
    int64_t number;
    uint64_t n_strings;
    uint64_t n_left; /* strings still to come */
    size_t first;    /* where the first begins */
    size_t pos;      /* bytes of the reply taken so far */
    bool have_number;
};

/* Begin; n_strings is for STORE_REPLY_STRINGS. */
void store_reply_begin(struct store_reply *reply, enum store_reply_kind kind,
                       uint64_t n_strings);

/*
 * Go on. data[0..len) are the bytes from the reply's first on.
 *
 * Returns 1 when it is whole: pos is its length; 0 when more bytes are needed;
 * -EPROTO for what this reply cannot be, -EMSGSIZE above STORE_REPLY_MAX.
 */
int store_reply_next(struct store_reply *reply, const uint8_t *data,
                     size_t len);

/* The string at *at of a whole reply; begin with first. Moves *at behind it. */
struct bytes store_reply_string(const uint8_t *data, size_t *at);

#endif
