#include "common/store_proto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * What follows the opcode: k key, v value, i i64, m u32, K a count and keys,
 * P a count and pairs of key and value.
 */
static const char *const op_layout[] = {
    [STORE_OP_NONE] = "",       [STORE_OP_VALIDATE] = "m",
    [STORE_OP_SET] = "kv",      [STORE_OP_COMPARE_SET] = "kvv",
    [STORE_OP_GET] = "k",       [STORE_OP_ADD] = "ki",
    [STORE_OP_CHECK] = "K",     [STORE_OP_WAIT] = "K",
    [STORE_OP_GETNUMKEYS] = "", [STORE_OP_DELETE_KEY] = "k",
    [STORE_OP_APPEND] = "kv",   [STORE_OP_MULTI_GET] = "K",
    [STORE_OP_MULTI_SET] = "P", [STORE_OP_CANCEL_WAIT] = "",
    [STORE_OP_PING] = "m",
};

/*
 * Opcodes by dialect. Dialect A's 7 is WATCH_KEY, which no Python program
 * can send; a connection that sends it is closed.
 */
static const enum store_op ops_a[] = {
    STORE_OP_SET,        STORE_OP_COMPARE_SET, STORE_OP_GET,
    STORE_OP_ADD,        STORE_OP_CHECK,       STORE_OP_WAIT,
    STORE_OP_GETNUMKEYS, STORE_OP_NONE,        STORE_OP_DELETE_KEY,
};

static const enum store_op ops_d[] = {
    STORE_OP_VALIDATE,    STORE_OP_SET,        STORE_OP_COMPARE_SET,
    STORE_OP_GET,         STORE_OP_ADD,        STORE_OP_CHECK,
    STORE_OP_WAIT,        STORE_OP_GETNUMKEYS, STORE_OP_DELETE_KEY,
    STORE_OP_APPEND,      STORE_OP_MULTI_GET,  STORE_OP_MULTI_SET,
    STORE_OP_CANCEL_WAIT, STORE_OP_PING,
};

#define N_OPS(table) (sizeof(table) / sizeof((table)[0]))

static enum store_op op_of(enum store_dialect dialect, uint8_t code)
{
    if (dialect == STORE_DIALECT_A) {
        return code < N_OPS(ops_a) ? ops_a[code] : STORE_OP_NONE;
    }
    return code < N_OPS(ops_d) ? ops_d[code] : STORE_OP_NONE;
}

uint8_t store_opcode_d(enum store_op op)
{
    uint8_t code = 0;

    while (ops_d[code] != op) {
        code++;
    }
    return code;
}

struct bytes store_request_field(const struct store_request *request, size_t i)
{
    const struct store_field *field = &request->fields[i];

    return (struct bytes){ .data = request->data + field->offset,
                           .len = field->len };
}

int store_dialect_detect(const uint8_t *data, size_t len,
                         enum store_dialect *dialect_out)
{
    if (len == 0) {
        return 0;
    }
    if (data[0] != 0) {
        if (op_of(STORE_DIALECT_A, data[0]) == STORE_OP_NONE) {
            return -EPROTO;
        }
        *dialect_out = STORE_DIALECT_A;
        return 1;
    }
    if (len < STORE_HELLO_LEN) {
        return 0;
    }
    /* In dialect A these five bytes would be a SET with a key of 1 GB. */
    *dialect_out =
        le_u32(data + 1) == STORE_MAGIC ? STORE_DIALECT_D : STORE_DIALECT_A;
    return 1;
}

/* Note the string of str_len bytes at pos. Memory follows what arrived: each
 * string has cost its sender at least eight bytes. */
static int parser_push_field(struct store_parser *parser)
{
    if (parser->n_fields == parser->fields_cap) {
        size_t cap = parser->fields_cap != 0 ? parser->fields_cap * 2 : 4;
        struct store_field *fields =
            realloc(parser->fields, cap * sizeof(*fields));

        if (fields == NULL) {
            return -ENOMEM;
        }
        parser->fields = fields;
        parser->fields_cap = cap;
    }
    parser->fields[parser->n_fields++] =
        (struct store_field){ .offset = parser->pos,
                              .len = (size_t)parser->str_len };
    return 0;
}

/* One string: 1 when it is there, 0 when it is not, or an error. */
static int take_str(struct store_parser *parser, const uint8_t *data,
                    size_t len, bool is_key)
{
    int rc;

    if (!parser->have_len) {
        if (len - parser->pos < 8) {
            return 0;
        }
        parser->str_len = le_u64(data + parser->pos);
        if (parser->str_len > (is_key ? STORE_KEY_MAX : STORE_VALUE_MAX)) {
            return -EMSGSIZE;
        }
        parser->pos += 8;
        parser->have_len = true;
    }
    if (parser->str_len > STORE_REQUEST_MAX - parser->pos) {
        return -EMSGSIZE;
    }
    if (len - parser->pos < parser->str_len) {
        return 0;
    }
    rc = parser_push_field(parser);
    if (rc < 0) {
        return rc;
    }
    parser->n_keys += is_key;
    parser->pos += (size_t)parser->str_len;
    parser->have_len = false;
    return 1;
}

/* A count, then that many keys, each with a value where pairs is set. */
static int take_list(struct store_parser *parser, const uint8_t *data,
                     size_t len, bool pairs)
{
    if (!parser->have_count) {
        uint64_t count;

        if (len - parser->pos < 8) {
            return 0;
        }
        count = le_u64(data + parser->pos);
        if (count > STORE_KEYS_MAX) {
            return -EMSGSIZE;
        }
        parser->items_left = pairs ? 2 * count : count;
        parser->pos += 8;
        parser->have_count = true;
    }
    while (parser->items_left > 0) {
        bool is_key = !pairs || parser->items_left % 2 == 0;
        int rc = take_str(parser, data, len, is_key);

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
        parser->delta = (int64_t)le_u64(data + parser->pos);
    } else {
        parser->nonce = le_u32(data + parser->pos);
    }
    parser->pos += size;
    return 1;
}

static int take_field(struct store_parser *parser, const uint8_t *data,
                      size_t len)
{
    switch (*parser->layout) {
    case 'k':
        return take_str(parser, data, len, true);
    case 'v':
        return take_str(parser, data, len, false);
    case 'K':
        return take_list(parser, data, len, false);
    case 'P':
        return take_list(parser, data, len, true);
    default:
        return take_number(parser, data, len, *parser->layout == 'i');
    }
}

/* Begin a new request with its opcode. */
static int parser_begin(struct store_parser *parser, uint8_t code)
{
    parser->op = op_of(parser->dialect, code);
    if (parser->op == STORE_OP_NONE) {
        return -EPROTO;
    }
    parser->layout = op_layout[parser->op];
    parser->pos = 1;
    parser->have_len = false;
    parser->have_count = false;
    parser->n_keys = 0;
    parser->n_fields = 0;
    parser->nonce = 0;
    parser->delta = 0;
    return 0;
}

int store_parser_next(struct store_parser *parser, const uint8_t *data,
                      size_t len, struct store_request *request_out,
                      size_t *used_out)
{
    int rc;

    if (len == 0) {
        return 0;
    }
    if (parser->layout == NULL) {
        rc = parser_begin(parser, data[0]);
        if (rc < 0) {
            return rc;
        }
    }
    for (; *parser->layout != '\0'; parser->layout++) {
        rc = take_field(parser, data, len);
        if (rc <= 0) {
            return rc;
        }
    }
    *request_out = (struct store_request){
        .op = parser->op,
        .nonce = parser->nonce,
        .delta = parser->delta,
        .n_keys = parser->n_keys,
        .n_fields = parser->n_fields,
        .data = data,
        .fields = parser->fields,
    };
    *used_out = parser->pos;
    parser->layout = NULL;
    return 1;
}

void store_parser_destroy(struct store_parser *parser)
{
    free(parser->fields);
    *parser = (struct store_parser){ .dialect = parser->dialect };
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
