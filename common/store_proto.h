/*
 * The store's wire format: requests decoded, replies encoded; no I/O.
 *
 * PyTorch's TCPStore: integers little-endian, strings with a u64 length in
 * front, requests of an opcode and fields, replies without any header. The
 * opcode numbers depend on the release ("dialect"). flaunch-store(7) has the
 * tables.
 */
#ifndef FLAUNCH_COMMON_STORE_PROTO_H
#define FLAUNCH_COMMON_STORE_PROTO_H

#include "common/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_MAGIC 0x3C85F7CEU
#define STORE_HELLO_LEN 5 /* VALIDATE and the magic */

/* Limits of one request, inclusive; those of PyTorch's libuv server. */
#define STORE_KEY_MAX 8192
#define STORE_VALUE_MAX ((size_t)8 * 1024 * 1024)
#define STORE_KEYS_MAX 131072
/* All of one request's bytes: MULTI_SET could otherwise ask for 1 TiB. */
#define STORE_REQUEST_MAX ((size_t)64 * 1024 * 1024)

enum store_dialect {
    STORE_DIALECT_A, /* PyTorch 1.9 to 2.0 */
    STORE_DIALECT_D, /* 2.2 and later: VALIDATE first */
};

enum store_op {
    STORE_OP_NONE, /* no such opcode in this dialect */
    STORE_OP_VALIDATE,
    STORE_OP_SET,
    STORE_OP_COMPARE_SET,
    STORE_OP_GET,
    STORE_OP_ADD,
    STORE_OP_CHECK,
    STORE_OP_WAIT,
    STORE_OP_GETNUMKEYS,
    STORE_OP_DELETE_KEY,
    STORE_OP_APPEND,
    STORE_OP_MULTI_GET,
    STORE_OP_MULTI_SET,
    STORE_OP_CANCEL_WAIT,
    STORE_OP_PING,
};

enum store_code {
    STORE_READY = 0,
    STORE_NOT_READY = 1,
    STORE_STOP_WAITING = 0,
    STORE_WAIT_CANCELED = 1,
};

/* Where one string of a request lies, from the request's first byte. */
struct store_field {
    size_t offset;
    size_t len;
};

/*
 * One request, whole. n_keys counts keys: 1 for SET, any for WAIT. Strings
 * alternate key, value (COMPARE_SET: key, expected, desired).
 */
struct store_request {
    enum store_op op;
    uint32_t nonce; /* VALIDATE, PING */
    int64_t delta;  /* ADD */
    size_t n_keys;
    size_t n_fields;
    const uint8_t *data; /* borrowed: the request's first byte */
    const struct store_field *fields;
};

/* String number i of a request; i < n_fields. */
struct bytes store_request_field(const struct store_request *request, size_t i);

/*
 * Remembers how far an unfinished request has been read, so that no byte is
 * looked at twice. Zero-initialise; store_parser_destroy frees.
 */
struct store_parser {
    enum store_dialect dialect;
    enum store_op op;
    const char *layout; /* fields still to come; NULL before the opcode */
    size_t pos;         /* bytes of the request taken so far */
    bool have_len;      /* the length of the next string is known */
    bool have_count;
    uint64_t str_len;
    uint64_t items_left;
    uint32_t nonce;
    int64_t delta;
    size_t n_keys;
    struct store_field *fields;
    size_t n_fields;
    size_t fields_cap;
};

/*
 * Go on reading a request.
 *
 * data[0..len)  the request's bytes so far, from its first byte at each call;
 *               they may move between calls, and may hold more than one
 *
 * Returns 1 with request_out set (its memory is valid until the next call,
 * request_out->data until data moves) and used_out the request's length; 0
 * when more bytes are needed; -EPROTO for an unknown opcode, -EMSGSIZE for a
 * length or count above its limit, -ENOMEM. After an error the connection
 * cannot go on.
 */
int store_parser_next(struct store_parser *parser, const uint8_t *data,
                      size_t len, struct store_request *request_out,
                      size_t *used_out);

void store_parser_destroy(struct store_parser *parser);

/*
 * The dialect that a connection's first bytes speak: 1 with dialect_out set,
 * 0 when more bytes are needed, -EPROTO for what is no store client.
 */
int store_dialect_detect(const uint8_t *data, size_t len,
                         enum store_dialect *dialect_out);

/* The opcode of op in dialect D; what a client of ours sends. */
uint8_t store_opcode_d(enum store_op op);

/* Append a string: u64 length, bytes. 0 or -ENOMEM. */
int store_put_str(struct buf *out, const void *data, size_t len);

#endif
