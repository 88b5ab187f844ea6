#include "common/store_proto.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * Name, and what follows the opcode: k key, v value, i i64, m u32, K a count
 * and keys, P a count and pairs of key and value.
 */
static const struct {
    const char *name;
    const char *layout;
} ops[] = {
    [STORE_OP_NONE] = { "none", "" },
    [STORE_OP_VALIDATE] = { "VALIDATE", "m" },
    [STORE_OP_SET] = { "SET", "kv" },
    [STORE_OP_COMPARE_SET] = { "COMPARE_SET", "kvv" },
    [STORE_OP_GET] = { "GET", "k" },
    [STORE_OP_ADD] = { "ADD", "ki" },
    [STORE_OP_CHECK] = { "CHECK", "K" },
    [STORE_OP_WAIT] = { "WAIT", "K" },
    [STORE_OP_GETNUMKEYS] = { "GETNUMKEYS", "" },
    [STORE_OP_WATCH_KEY] = { "WATCH_KEY", "k" },
    [STORE_OP_DELETE_KEY] = { "DELETE_KEY", "k" },
    [STORE_OP_APPEND] = { "APPEND", "kv" },
    [STORE_OP_DELETE_OR_APPEND] = { "DELETE_KEY or APPEND", "kv" },
    [STORE_OP_MULTI_GET] = { "MULTI_GET", "K" },
    [STORE_OP_MULTI_SET] = { "MULTI_SET", "P" },
    [STORE_OP_CANCEL_WAIT] = { "CANCEL_WAIT", "" },
    [STORE_OP_PING] = { "PING", "m" },
    [STORE_OP_QUEUE_PUSH] = { "QUEUE_PUSH", "kv" },
    [STORE_OP_QUEUE_POP] = { "QUEUE_POP", "k" },
    [STORE_OP_QUEUE_LEN] = { "QUEUE_LEN", "k" },
    [STORE_OP_LIST_KEYS] = { "LIST_KEYS", "" },
    [STORE_OP_BARRIER] = { "BARRIER", "ki" },
};

/* Opcodes of each dialect, from 0. Those of OLD are what A and C agree on, and
 * what is told apart as it comes. */
static const enum store_op ops_old[] = {
    STORE_OP_SET,        STORE_OP_COMPARE_SET, STORE_OP_GET,
    STORE_OP_ADD,        STORE_OP_CHECK,       STORE_OP_WAIT,
    STORE_OP_GETNUMKEYS, STORE_OP_DELETE_KEY,  STORE_OP_DELETE_OR_APPEND,
    STORE_OP_MULTI_GET,  STORE_OP_MULTI_SET,   STORE_OP_CANCEL_WAIT,
};

static const enum store_op ops_a[] = {
    STORE_OP_SET,        STORE_OP_COMPARE_SET, STORE_OP_GET,
    STORE_OP_ADD,        STORE_OP_CHECK,       STORE_OP_WAIT,
    STORE_OP_GETNUMKEYS, STORE_OP_WATCH_KEY,   STORE_OP_DELETE_KEY,
};

static const enum store_op ops_c[] = {
    STORE_OP_SET,        STORE_OP_COMPARE_SET, STORE_OP_GET,
    STORE_OP_ADD,        STORE_OP_CHECK,       STORE_OP_WAIT,
    STORE_OP_GETNUMKEYS, STORE_OP_DELETE_KEY,  STORE_OP_APPEND,
    STORE_OP_MULTI_GET,  STORE_OP_MULTI_SET,   STORE_OP_CANCEL_WAIT,
};

static const enum store_op ops_d[] = {
    STORE_OP_VALIDATE,    STORE_OP_SET,        STORE_OP_COMPARE_SET,
    STORE_OP_GET,         STORE_OP_ADD,        STORE_OP_CHECK,
    STORE_OP_WAIT,        STORE_OP_GETNUMKEYS, STORE_OP_DELETE_KEY,
    STORE_OP_APPEND,      STORE_OP_MULTI_GET,  STORE_OP_MULTI_SET,
    STORE_OP_CANCEL_WAIT, STORE_OP_PING,       STORE_OP_QUEUE_PUSH,
    STORE_OP_QUEUE_POP,   STORE_OP_QUEUE_LEN,  STORE_OP_LIST_KEYS,
    STORE_OP_BARRIER,
};

#define N_OPS(table) (sizeof(table) / sizeof((table)[0]))

static const struct {
    const enum store_op *ops;
    size_t n;
} dialects[] = {
    [STORE_DIALECT_OLD] = { ops_old, N_OPS(ops_old) },
    [STORE_DIALECT_A] = { ops_a, N_OPS(ops_a) },
    [STORE_DIALECT_C] = { ops_c, N_OPS(ops_c) },
    [STORE_DIALECT_D] = { ops_d, N_OPS(ops_d) },
};

static enum store_op op_of(enum store_dialect dialect, uint8_t code)
{
    return code < dialects[dialect].n ? dialects[dialect].ops[code]
                                      : STORE_OP_NONE;
}

int store_opcode(enum store_dialect dialect, enum store_op op)
{
    size_t code;

    for (code = 0; code < dialects[dialect].n; code++) {
        if (dialects[dialect].ops[code] == op) {
            return (int)code;
        }
    }
    return -ENOTSUP;
}

const char *store_op_name(enum store_op op)
{
    return ops[op].name;
}

struct bytes store_request_field(const struct store_request *request, size_t i)
{
    const struct store_field *field = &request->fields[i];

    return (struct bytes){ .data = request->data + field->offset,
                           .len = field->len };
}

static enum store_dialect old_dialect(enum store_legacy legacy)
{
    return legacy == STORE_LEGACY_1_13  ? STORE_DIALECT_A
           : legacy == STORE_LEGACY_2_1 ? STORE_DIALECT_C
                                        : STORE_DIALECT_OLD;
}

int store_dialect_detect(const uint8_t *data, size_t len,
                         enum store_legacy legacy,
                         enum store_dialect *dialect_out)
{
    enum store_dialect old = old_dialect(legacy);

    if (len == 0) {
        return 0;
    }
    if (data[0] != 0) {
        if (op_of(old, data[0]) == STORE_OP_NONE) {
            return -EPROTO;
        }
        *dialect_out = old;
        return 1;
    }
    if (len < STORE_HELLO_LEN) {
        return 0;
    }
    /* Before 2.2 these five bytes would be a SET with a key of 1 GB. */
    *dialect_out = le_u32(data + 1) == STORE_MAGIC ? STORE_DIALECT_D : old;
    return 1;
}

void store_parser_init(struct store_parser *parser,
                       const struct store_conf *conf)
{
    *parser = (struct store_parser){ .conf = conf };
}

static struct store_field *fields_of(struct store_parser *parser)
{
    return parser->many != NULL ? parser->many : parser->few;
}

/* Room for one string more. Memory follows what arrived: each string has cost
 * its sender at least eight bytes. */
static int fields_grow(struct store_parser *parser)
{
    size_t cap = 2 * parser->n_fields;
    struct store_field *many;

    assert(cap > 0);
    many = realloc(parser->many, cap * sizeof(*parser->many));
    if (many == NULL) {
        return -ENOMEM;
    }
    if (parser->many == NULL) {
        memcpy(many, parser->few, sizeof(parser->few));
    }
    parser->many = many;
    parser->fields_cap = cap;
    return 0;
}

/* Note the string of str_len bytes at pos. */
static int parser_push_field(struct store_parser *parser)
{
    size_t cap = parser->many != NULL ? parser->fields_cap : STORE_FIELDS_FEW;

    if (parser->n_fields == cap && fields_grow(parser) < 0) {
        return -ENOMEM;
    }
    fields_of(parser)[parser->n_fields++] =
        (struct store_field){ .offset = parser->pos,
                              .len = (size_t)parser->str_len };
    return 0;
}

/* The longest request: one value must fit, whatever its limit. */
static size_t request_max(const struct store_conf *conf)
{
    size_t one = conf->max_key_bytes + 2 * conf->max_value_bytes + 64;

    return one > STORE_REQUEST_MAX ? one : STORE_REQUEST_MAX;
}

/* The length of a string against its limits. */
static int check_length(const struct store_parser *parser, bool is_key,
                        struct err *err)
{
    const struct store_conf *conf = parser->conf;
    size_t max = is_key ? conf->max_key_bytes : conf->max_value_bytes;

    if (parser->str_len > max) {
        return err_set(err, -EMSGSIZE,
                       "%s: a %s of %" PRIu64
                       " bytes; the limit is %zu (--store-max-%s-bytes)",
                       ops[parser->op].name, is_key ? "key" : "value",
                       parser->str_len, max, is_key ? "key" : "value");
    }
    if (parser->str_len > request_max(conf) - parser->pos) {
        return err_set(err, -EMSGSIZE, "%s: a request of more than %zu bytes",
                       ops[parser->op].name, request_max(conf));
    }
    return 0;
}

/* One string: 1 when it is there, 0 when it is not, or an error. */
static int take_str(struct store_parser *parser, const uint8_t *data,
                    size_t len, bool is_key, struct err *err)
{
    int rc;

    if (!parser->have_len) {
        if (len - parser->pos < 8) {
            return 0;
        }
        parser->str_len = le_u64(data + parser->pos);
        parser->pos += 8;
        rc = check_length(parser, is_key, err);
        if (rc < 0) {
            return rc;
        }
        parser->have_len = true;
    }
    if (len - parser->pos < parser->str_len) {
        return 0;
    }
    rc = parser_push_field(parser);
    if (rc < 0) {
        return err_sys(err, rc, "%s", ops[parser->op].name);
    }
    parser->n_keys += is_key;
    parser->pos += (size_t)parser->str_len;
    parser->have_len = false;
    return 1;
}

/* A count, then that many keys, each with a value where pairs is set. */
static int take_list(struct store_parser *parser, const uint8_t *data,
                     size_t len, bool pairs, struct err *err)
{
    if (!parser->have_count) {
        uint64_t count;

        if (len - parser->pos < 8) {
            return 0;
        }
        count = le_u64(data + parser->pos);
        if (count > STORE_KEYS_MAX) {
            return err_set(err, -EMSGSIZE,
                           "%s: %" PRIu64 " keys; the limit is %d",
                           ops[parser->op].name, count, STORE_KEYS_MAX);
        }
        parser->items_left = pairs ? 2 * count : count;
        parser->pos += 8;
        parser->have_count = true;
    }
    while (parser->items_left > 0) {
        bool is_key = !pairs || parser->items_left % 2 == 0;
        int rc = take_str(parser, data, len, is_key, err);

        if (rc <= 0) {
            return rc;
        }
        parser->items_left--;
    }
    return 1;
}

static int take_number(struct store_parser *parser, const uint8_t *data,
                       size_t len, bool wide)
{
    size_t size = wide ? 8 : 4;

    if (len - parser->pos < size) {
        return 0;
    }
    if (wide) {
        parser->number = (int64_t)le_u64(data + parser->pos);
    } else {
        parser->nonce = le_u32(data + parser->pos);
    }
    parser->pos += size;
    return 1;
}

static int take_field(struct store_parser *parser, const uint8_t *data,
                      size_t len, struct err *err)
{
    switch (*parser->layout) {
    case 'k':
        return take_str(parser, data, len, true, err);
    case 'v':
        return take_str(parser, data, len, false, err);
    case 'K':
        return take_list(parser, data, len, false, err);
    case 'P':
        return take_list(parser, data, len, true, err);
    default:
        return take_number(parser, data, len, *parser->layout == 'i');
    }
}

/* Begin a new request with its opcode. */
static int parser_begin(struct store_parser *parser, uint8_t code,
                        struct err *err)
{
    parser->op = op_of(parser->dialect, code);
    if (parser->op == STORE_OP_NONE) {
        return err_set(err, -EPROTO, "no request has the number %u", code);
    }
    parser->layout = ops[parser->op].layout;
    parser->pos = 1;
    parser->have_len = false;
    parser->have_count = false;
    parser->n_keys = 0;
    parser->n_fields = 0;
    parser->nonce = 0;
    parser->number = 0;
    return 0;
}

/* What only one of the old dialects has tells which it is. */
static void learn_dialect(struct store_parser *parser)
{
    if (parser->dialect != STORE_DIALECT_OLD) {
        return;
    }
    switch (parser->op) {
    case STORE_OP_DELETE_OR_APPEND:
        parser->op = STORE_OP_APPEND; /* it had a value */
        parser->dialect = STORE_DIALECT_C;
        break;
    case STORE_OP_DELETE_KEY: /* A client of A cannot send its 7. */
    case STORE_OP_MULTI_GET:
    case STORE_OP_MULTI_SET:
    case STORE_OP_CANCEL_WAIT:
        parser->dialect = STORE_DIALECT_C;
        break;
    default:
        break;
    }
}

bool store_parser_undecided(const struct store_parser *parser, size_t len)
{
    return parser->layout != NULL && parser->op == STORE_OP_DELETE_OR_APPEND &&
           parser->n_fields == 1 && len == parser->pos && !parser->have_len;
}

void store_parser_settle(struct store_parser *parser)
{
    parser->op = STORE_OP_DELETE_KEY;
    parser->dialect = STORE_DIALECT_A;
    parser->layout = "";
}

int store_parser_next(struct store_parser *parser, const uint8_t *data,
                      size_t len, struct store_request *request_out,
                      size_t *used_out, struct err *err)
{
    int rc;

    if (len == 0) {
        return 0;
    }
    if (parser->layout == NULL) {
        rc = parser_begin(parser, data[0], err);
        if (rc < 0) {
            return rc;
        }
    }
    assert(parser->layout != NULL);
    for (; *parser->layout != '\0'; parser->layout++) {
        rc = take_field(parser, data, len, err);
        if (rc <= 0) {
            return rc;
        }
    }
    learn_dialect(parser);
    *request_out = (struct store_request){
        .op = parser->op,
        .nonce = parser->nonce,
        .number = parser->number,
        .n_keys = parser->n_keys,
        .n_fields = parser->n_fields,
        .data = data,
        .fields = fields_of(parser),
    };
    *used_out = parser->pos;
    parser->layout = NULL;
    return 1;
}

size_t store_parser_memory(const struct store_parser *parser)
{
    return parser->fields_cap * sizeof(*parser->many);
}

void store_parser_trim(struct store_parser *parser)
{
    free(parser->many);
    parser->many = NULL;
    parser->fields_cap = 0;
}

int store_put_str(struct buf *out, const void *data, size_t len)
{
    int rc = buf_reserve(out, 8 + len);

    if (rc < 0) {
        return rc;
    }
    (void)buf_append_u64(out, len);
    (void)buf_append(out, data, len);
    return 0;
}
