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
#include "common/err.h"
#include "common/store_conf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_MAGIC 0x3C85F7CEU
#define STORE_HELLO_LEN 5 /* VALIDATE and the magic */

/* Keys of one request, inclusive; PyTorch's libuv server has the same. */
#define STORE_KEYS_MAX 131072
/* All of one request's bytes, unless one value may be longer: MULTI_SET could
 * otherwise ask for 1 TiB. */
#define STORE_REQUEST_MAX ((size_t)64 * 1024 * 1024)

enum store_dialect {
    STORE_DIALECT_OLD, /* A or C: nothing has told yet which */
    STORE_DIALECT_A,   /* PyTorch 1.9 to 2.0 */
    STORE_DIALECT_C,   /* 2.1 */
    STORE_DIALECT_D,   /* 2.2 and later: VALIDATE first */
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
    STORE_OP_WATCH_KEY,
    STORE_OP_DELETE_KEY,
    STORE_OP_APPEND,
    STORE_OP_DELETE_OR_APPEND, /* opcode 8 while the dialect is OLD */
    STORE_OP_MULTI_GET,
    STORE_OP_MULTI_SET,
    STORE_OP_CANCEL_WAIT,
    STORE_OP_PING,
    STORE_OP_QUEUE_PUSH,
    STORE_OP_QUEUE_POP,
    STORE_OP_QUEUE_LEN,
    STORE_OP_LIST_KEYS,
    STORE_OP_BARRIER,
};

enum store_code {
    STORE_READY = 0,
    STORE_NOT_READY = 1,
    STORE_STOP_WAITING = 0,
    STORE_WAIT_CANCELED = 1,
    STORE_KEY_CALLBACK_REGISTERED = 3, /* WATCH_KEY */
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
    int64_t number; /* ADD: delta; BARRIER: world size */
    size_t n_keys;
    size_t n_fields;
    const uint8_t *data; /* borrowed: the request's first byte */
    const struct store_field *fields;
};

/* String number i of a request; i < n_fields. */
struct bytes store_request_field(const struct store_request *request, size_t i);

/* Most requests have no more strings than this. */
#define STORE_FIELDS_FEW 3

/*
 * Remembers how far an unfinished request has been read, so that no byte is
 * looked at twice. store_parser_init begins, store_parser_trim frees. It must
 * not move while a request is unfinished.
 */
struct store_parser {
    const struct store_conf *conf; /* its limits of a request */
    enum store_dialect dialect;
    enum store_op op;
    const char *layout; /* fields still to come; NULL before the opcode */
    size_t pos;         /* bytes of the request taken so far */
    bool have_len;      /* the length of the next string is known */
    bool have_count;
    uint64_t str_len;
    uint64_t items_left;
    uint32_t nonce;
    int64_t number;
    size_t n_keys;
    size_t n_fields;
    size_t fields_cap;        /* of many */
    struct store_field *many; /* NULL: few is used */
    struct store_field few[STORE_FIELDS_FEW];
};

/* conf is borrowed for the parser's life. */
void store_parser_init(struct store_parser *parser,
                       const struct store_conf *conf);

/*
 * Go on reading a request.
 *
 * data[0..len)  the request's bytes so far, from its first byte at each call;
 *               they may move between calls, and may hold more than one
 *
 * Returns 1 with request_out set (its memory is valid until the next call,
 * request_out->data until data moves) and used_out the request's length; 0
 * when more bytes are needed; -EPROTO for an unknown opcode, -EMSGSIZE for a
 * length or count above its limit, -ENOMEM, each with a sentence. After an
 * error the connection cannot go on.
 */
int store_parser_next(struct store_parser *parser, const uint8_t *data,
                      size_t len, struct store_request *request_out,
                      size_t *used_out, struct err *err);

/*
 * Whether len bytes may be all of a DELETE_KEY of dialect A, or an APPEND of C
 * whose value is still to come. If no byte follows for STORE_GRACE_MS it is a
 * DELETE_KEY, since a client of A waits for its answer:
 * store_parser_settle(parser), and the next call returns it.
 */
#define STORE_GRACE_MS 50
bool store_parser_undecided(const struct store_parser *parser, size_t len);
void store_parser_settle(struct store_parser *parser);

/* Bytes on the heap. */
size_t store_parser_memory(const struct store_parser *parser);

/* Free that; between two requests only, and then the parser can go on. */
void store_parser_trim(struct store_parser *parser);

/*
 * The dialect that a connection's first bytes speak: 1 with dialect_out set,
 * 0 when more bytes are needed, -EPROTO for what is no store client.
 */
int store_dialect_detect(const uint8_t *data, size_t len,
                         enum store_legacy legacy,
                         enum store_dialect *dialect_out);

/* The opcode of op in a dialect, or -ENOTSUP; what a client of ours sends. */
int store_opcode(enum store_dialect dialect, enum store_op op);

/* "MULTI_GET", as flaunch-store(7) has it. */
const char *store_op_name(enum store_op op);

/* Append a string: u64 length, bytes. 0 or -ENOMEM. */
int store_put_str(struct buf *out, const void *data, size_t len);

#endif
