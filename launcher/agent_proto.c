#include "launcher/agent_proto.h"

#include <errno.h>
#include <string.h>

static const uint8_t magic[4] = { 'F', 'L', 'C', 'H' };

#define LENGTH_LEN 4
#define HEADER_LEN 17 /* u8 type, u64 incarnation, u64 round */

enum field_kind {
    FIELD_NONE, /* the end of a list */
    FIELD_U32,
    FIELD_U64,
    FIELD_TEXT,
};

struct field {
    enum field_kind kind;
    size_t offset;
    size_t max; /* of a text */
};

#define U32(member)                                                            \
    {                                                                          \
        FIELD_U32, offsetof(struct agent_msg, member), 0                       \
    }
#define U64(member)                                                            \
    {                                                                          \
        FIELD_U64, offsetof(struct agent_msg, member), 0                       \
    }
#define TEXT(member, max)                                                      \
    {                                                                          \
        FIELD_TEXT, offsetof(struct agent_msg, member), max                    \
    }

#define FIELDS_MAX 14

/* The fields of each type, in wire order. */
static const struct layout {
    const char *name;
    struct field fields[FIELDS_MAX];
} layouts[] = {
    [AGENT_HELLO] = { "HELLO",
                      { U32(min_nodes), U32(max_nodes), U32(node_rank),
                        U32(n_workers), TEXT(host, AGENT_HOST_MAX),
                        TEXT(run_id, AGENT_RUN_ID_MAX),
                        TEXT(role, AGENT_ROLE_MAX) } },
    [AGENT_HEARTBEAT] = { "HEARTBEAT", { U64(seq) } },
    [AGENT_FAILED] = { "FAILED",
                       { U32(code), U32(for_good),
                         TEXT(text, AGENT_TEXT_MAX) } },
    [AGENT_ENDED] = { "ENDED",
                      { U32(code), U32(n_stopped), U32(n_done), U32(n_failed),
                        TEXT(text, AGENT_TEXT_MAX),
                        TEXT(report, AGENT_REPORT_MAX) } },
    [AGENT_STOP_JOB] = { "STOP_JOB",
                         { U32(code), U32(signo), U32(at_once),
                           TEXT(text, AGENT_TEXT_MAX) } },
    [AGENT_LEAVE] = { "LEAVE", { TEXT(text, AGENT_TEXT_MAX) } },
    [AGENT_BYE] = { "BYE", { { FIELD_NONE, 0, 0 } } },
    [AGENT_FIRST_DONE] = { "FIRST_DONE", { { FIELD_NONE, 0, 0 } } },
    [AGENT_WELCOME] = { "WELCOME",
                        { U64(lease_ms), TEXT(host, AGENT_HOST_MAX) } },
    [AGENT_REFUSED] = { "REFUSED", { U32(code), TEXT(text, AGENT_TEXT_MAX) } },
    [AGENT_ACK] = { "ACK", { U64(seq) } },
    [AGENT_STATUS] = { "STATUS", { TEXT(text, AGENT_TEXT_MAX) } },
    [AGENT_START] = { "START",
                      { U32(restarts), U32(max_restarts), U32(changes),
                        U32(group_rank), U32(n_nodes), U32(base_rank),
                        U32(world_size), U32(role_base_rank),
                        U32(role_world_size), U32(port),
                        TEXT(address, AGENT_HOST_MAX) } },
    [AGENT_STOP] = { "STOP",
                     { U32(signo), U32(at_once), U32(for_good),
                       TEXT(text, AGENT_TEXT_MAX) } },
    [AGENT_END] = { "END",
                    { U32(code), U32(mine), U32(said),
                      TEXT(text, AGENT_TEXT_MAX),
                      TEXT(report, AGENT_REPORT_MAX) } },
};

#define N_LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

static const char *text_of(const struct agent_msg *msg,
                           const struct field *field)
{
    const char *text;

    memcpy(&text, (const char *)msg + field->offset, sizeof(text));
    return text != NULL ? text : "";
}

static void text_set(struct agent_msg *msg, const struct field *field,
                     const char *text)
{
    memcpy((char *)msg + field->offset, &text, sizeof(text));
}

/* The length of a text on the wire, its 0 included: longer ones are cut. */
static size_t text_len(const char *text, const struct field *field)
{
    return strnlen(text, field->max - 1) + 1;
}

static size_t field_len(const struct agent_msg *msg, const struct field *field)
{
    switch (field->kind) {
    case FIELD_U32:
        return 4;
    case FIELD_U64:
        return 8;
    case FIELD_TEXT:
        return 4 + text_len(text_of(msg, field), field);
    default:
        return 0;
    }
}

int agent_preface_encode(struct buf *out)
{
    int rc = buf_append(out, magic, sizeof(magic));

    return rc == 0 ? buf_append_u32(out, AGENT_VERSION) : rc;
}

int agent_preface_decode(const uint8_t *data, size_t len, uint32_t *version_out)
{
    size_t n = len < sizeof(magic) ? len : sizeof(magic);

    if (n > 0 && memcmp(data, magic, n) != 0) {
        return -EPROTO;
    }
    if (len < AGENT_PREFACE_LEN) {
        return 0;
    }
    *version_out = le_u32(data + sizeof(magic));
    return 1;
}

/* There is room for it. */
static void field_encode(struct buf *out, const struct agent_msg *msg,
                         const struct field *field)
{
    const void *value = (const char *)msg + field->offset;
    const char *text;
    uint64_t u64;
    uint32_t u32;
    size_t len;

    switch (field->kind) {
    case FIELD_U32:
        memcpy(&u32, value, sizeof(u32));
        (void)buf_append_u32(out, u32);
        break;
    case FIELD_U64:
        memcpy(&u64, value, sizeof(u64));
        (void)buf_append_u64(out, u64);
        break;
    case FIELD_TEXT:
        text = text_of(msg, field);
        len = text_len(text, field);
        (void)buf_append_u32(out, (uint32_t)len);
        (void)buf_append(out, text, len - 1);
        (void)buf_append_u8(out, 0);
        break;
    case FIELD_NONE:
        break;
    }
}

struct agent_msg agent_msg_init(enum agent_msg_type type)
{
    return (struct agent_msg){ .type = type,
                               .host = "",
                               .run_id = "",
                               .role = "",
                               .address = "",
                               .text = "",
                               .report = "" };
}

int agent_msg_encode(struct buf *out, const struct agent_msg *msg)
{
    const struct field *fields = layouts[msg->type].fields;
    size_t len = HEADER_LEN;
    size_t i;
    int rc;

    for (i = 0; i < FIELDS_MAX; i++) {
        len += field_len(msg, &fields[i]);
    }
    rc = buf_reserve(out, LENGTH_LEN + len);
    if (rc < 0) {
        return rc;
    }
    (void)buf_append_u32(out, (uint32_t)len);
    (void)buf_append_u8(out, (uint8_t)msg->type);
    (void)buf_append_u64(out, msg->incarnation);
    (void)buf_append_u64(out, msg->round);
    for (i = 0; i < FIELDS_MAX; i++) {
        field_encode(out, msg, &fields[i]);
    }
    return 0;
}

static void text_decode(struct reader *reader, struct agent_msg *msg,
                        const struct field *field)
{
    uint32_t len = reader_u32(reader);
    struct bytes text;

    if (len == 0 || len > field->max) {
        reader->bad = true;
        return;
    }
    text = reader_bytes(reader, len);
    if (text.data == NULL ||
        memchr(text.data, '\0', len) != text.data + len - 1) {
        reader->bad = true;
        return;
    }
    text_set(msg, field, (const char *)text.data);
}

static void field_decode(struct reader *reader, struct agent_msg *msg,
                         const struct field *field)
{
    void *value = (char *)msg + field->offset;
    uint64_t u64;
    uint32_t u32;

    switch (field->kind) {
    case FIELD_U32:
        u32 = reader_u32(reader);
        memcpy(value, &u32, sizeof(u32));
        break;
    case FIELD_U64:
        u64 = reader_u64(reader);
        memcpy(value, &u64, sizeof(u64));
        break;
    case FIELD_TEXT:
        text_decode(reader, msg, field);
        break;
    case FIELD_NONE:
        break;
    }
}

/* The whole frame is there. */
static int frame_decode(struct reader *frame, struct agent_msg *msg_out)
{
    uint8_t type = reader_u8(frame);
    struct agent_msg msg = agent_msg_init((enum agent_msg_type)type);
    size_t i;

    if (type < AGENT_HELLO || type >= N_LAYOUTS) {
        return -EPROTO;
    }
    msg.incarnation = reader_u64(frame);
    msg.round = reader_u64(frame);
    for (i = 0; i < FIELDS_MAX; i++) {
        field_decode(frame, &msg, &layouts[type].fields[i]);
    }
    if (frame->bad || frame->pos != frame->len) {
        return -EPROTO;
    }
    *msg_out = msg;
    return 1;
}

int agent_msg_decode(struct reader *reader, struct agent_msg *msg_out)
{
    size_t left = reader->len - reader->pos;
    const uint8_t *at = reader->data + reader->pos;
    struct reader frame;
    uint32_t len;
    int rc;

    if (left < LENGTH_LEN) {
        return 0;
    }
    len = le_u32(at);
    if (len < HEADER_LEN || len > AGENT_FRAME_MAX - LENGTH_LEN) {
        return -EPROTO;
    }
    if (left - LENGTH_LEN < len) {
        return 0;
    }
    frame = (struct reader){ .data = at + LENGTH_LEN, .len = len };
    rc = frame_decode(&frame, msg_out);
    if (rc > 0) {
        reader->pos += LENGTH_LEN + len;
    }
    return rc;
}

const char *agent_msg_name(enum agent_msg_type type)
{
    return layouts[type].name;
}
