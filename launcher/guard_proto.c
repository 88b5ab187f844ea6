#include "launcher/guard_proto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_LEN 5 /* u8 type, u32 length */

enum field_kind {
    FIELD_U32,
    FIELD_U64,
    FIELD_TEXT,
};

struct field {
    enum field_kind kind;
    size_t offset;
};

#define U32(member)                                                            \
    {                                                                          \
        FIELD_U32, offsetof(struct guard_msg, member)                          \
    }
#define U64(member)                                                            \
    {                                                                          \
        FIELD_U64, offsetof(struct guard_msg, member)                          \
    }
#define TEXT(member)                                                           \
    {                                                                          \
        FIELD_TEXT, offsetof(struct guard_msg, member)                         \
    }
#define TEXT_LEN sizeof(((struct guard_msg *)NULL)->name)

/* The fields of each type, in wire order. */
static const struct layout {
    size_t n_fields;
    struct field fields[5];
} layouts[] = {
    [GUARD_SPAWN] = { 2, { U32(count), U64(size) } },
    [GUARD_SIGNAL] = { 1, { U32(signo) } },
    [GUARD_STOP] = { 2, { U32(signo), U64(grace_ms) } },
    [GUARD_GROUPS] = { 1, { U32(signo) } },
    [GUARD_DRAINED] = { 0, { { FIELD_U32, 0 } } },
    [GUARD_LEASE] = { 1, { U64(at_ns) } },
    [GUARD_FENCED] = { 0, { { FIELD_U32, 0 } } },
    [GUARD_SPAWNED] = { 4, { U32(worker), U32(pid), U64(at_ns), U32(count) } },
    [GUARD_FAILED] = { 3, { U32(worker), U32(step), U32(error) } },
    [GUARD_EXITED] = { 5,
                       { U32(worker), U32(pid), U32(status), U64(at_ns),
                         U64(peak_kib) } },
    [GUARD_LEFT] = { 4, { U32(pid), U32(state), TEXT(name), TEXT(wchan) } },
    [GUARD_EMPTY] = { 0, { { FIELD_U32, 0 } } },
};

static size_t field_len(enum field_kind kind)
{
    switch (kind) {
    case FIELD_U32:
        return 4;
    case FIELD_U64:
        return 8;
    default:
        return TEXT_LEN;
    }
}

static size_t layout_len(const struct layout *layout)
{
    size_t len = 0;
    size_t i;

    for (i = 0; i < layout->n_fields; i++) {
        len += field_len(layout->fields[i].kind);
    }
    return len;
}

int guard_msg_encode(struct buf *out, const struct guard_msg *msg)
{
    const struct layout *layout = &layouts[msg->type];
    size_t len = layout_len(layout);
    size_t i;
    int rc = buf_reserve(out, HEADER_LEN + len);

    if (rc < 0) {
        return rc;
    }
    (void)buf_append_u8(out, (uint8_t)msg->type);
    (void)buf_append_u32(out, (uint32_t)len);
    for (i = 0; i < layout->n_fields; i++) {
        const void *value = (const char *)msg + layout->fields[i].offset;
        uint32_t u32;
        uint64_t u64;

        switch (layout->fields[i].kind) {
        case FIELD_U32:
            memcpy(&u32, value, sizeof(u32));
            (void)buf_append_u32(out, u32);
            break;
        case FIELD_U64:
            memcpy(&u64, value, sizeof(u64));
            (void)buf_append_u64(out, u64);
            break;
        case FIELD_TEXT:
            (void)buf_append(out, value, TEXT_LEN);
            break;
        }
    }
    return 0;
}

static void field_decode(struct reader *reader, struct guard_msg *msg,
                         const struct field *field)
{
    void *value = (char *)msg + field->offset;
    struct bytes text;
    uint32_t u32;
    uint64_t u64;

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
        text = reader_bytes(reader, TEXT_LEN);
        if (text.data != NULL) {
            memcpy(value, text.data, TEXT_LEN);
            ((char *)value)[TEXT_LEN - 1] = '\0';
        }
        break;
    }
}

int guard_msg_decode(struct reader *reader, struct guard_msg *msg_out)
{
    const struct layout *layout;
    struct guard_msg msg = { 0 };
    uint32_t len;
    uint8_t type;
    size_t i;

    if (reader->pos == reader->len) {
        return 0;
    }
    type = reader_u8(reader);
    len = reader_u32(reader);
    if (reader->bad || type < GUARD_SPAWN || type > GUARD_EMPTY) {
        return -EPROTO;
    }
    layout = &layouts[type];
    if (len != layout_len(layout)) {
        return -EPROTO;
    }
    msg.type = (enum guard_msg_type)type;
    for (i = 0; i < layout->n_fields; i++) {
        field_decode(reader, &msg, &layout->fields[i]);
    }
    if (reader->bad) {
        return -EPROTO;
    }
    *msg_out = msg;
    return 1;
}

size_t guard_packet_len(const struct buf *out, struct guard_msg *last_out)
{
    struct reader reader = { .data = out->data, .len = out->len };
    struct guard_msg msg;
    size_t len = 0;

    *last_out = (struct guard_msg){ .type = GUARD_EMPTY };
    while (last_out->type == GUARD_EMPTY &&
           guard_msg_decode(&reader, &msg) > 0 &&
           reader.pos <= GUARD_PACKET_MAX) {
        len = reader.pos;
        if (msg.type == GUARD_SPAWNED || msg.type == GUARD_LEFT) {
            *last_out = msg;
        }
    }
    return len;
}

/* A string with its terminating NUL, so that a decoder need not copy. */
static int put_text(struct buf *out, const char *text)
{
    size_t len = strlen(text) + 1;
    int rc = buf_reserve(out, 4 + len);

    if (rc < 0) {
        return rc;
    }
    (void)buf_append_u32(out, (uint32_t)len);
    (void)buf_append(out, text, len);
    return 0;
}

static int put_texts(struct buf *out, char *const *texts)
{
    uint32_t n = 0;
    uint32_t i;
    int rc;

    while (texts[n] != NULL) {
        n++;
    }
    rc = buf_append_u32(out, n);
    for (i = 0; i < n && rc == 0; i++) {
        rc = put_text(out, texts[i]);
    }
    return rc;
}

static int put_stream(struct buf *out, const struct guard_stream *stream)
{
    int rc = buf_append_u32(out, stream->kind);

    if (rc == 0) {
        rc = buf_append_u32(out, stream->shown);
    }
    return rc == 0 ? put_text(out, stream->path) : rc;
}

int guard_plan_encode(struct buf *out, const struct guard_plan *plan)
{
    uint32_t i;
    int rc;

    rc = buf_append_u32(out, plan->n_workers);
    if (rc == 0) {
        rc = buf_append_u32(out, plan->stdin_worker);
    }
    if (rc == 0) {
        rc = put_text(out, plan->path);
    }
    if (rc == 0) {
        rc = put_text(out, plan->keep);
    }
    if (rc == 0) {
        rc = put_texts(out, plan->base_env);
    }
    if (rc == 0) {
        rc = buf_append_u32(out, plan->n_argvs);
    }
    for (i = 0; i < plan->n_argvs && rc == 0; i++) {
        rc = put_texts(out, plan->argvs[i]);
    }
    if (rc == 0) {
        rc = buf_append_u32(out, plan->cpu_bytes);
    }
    if (rc == 0 && plan->cpu_bytes > 0) {
        rc = buf_append(out, plan->cpus,
                        (size_t)plan->n_workers * plan->cpu_bytes);
    }
    for (i = 0; i < plan->n_workers && rc == 0; i++) {
        rc = put_stream(out, &plan->streams[i][GUARD_OUT]);
        if (rc == 0) {
            rc = put_stream(out, &plan->streams[i][GUARD_ERR]);
        }
        if (rc == 0) {
            rc = put_texts(out, plan->worker_env[i]);
        }
    }
    return rc;
}

/* A string that ends where it says, or NULL. */
static char *take_text(struct reader *reader)
{
    uint32_t len = reader_u32(reader);
    struct bytes text = reader_bytes(reader, len);

    if (text.data == NULL || len == 0 ||
        memchr(text.data, '\0', len) != text.data + len - 1) {
        reader->bad = true;
        return NULL;
    }
    return (char *)(uintptr_t)text.data;
}

/* An array of strings, NULL at its end; NULL for what is none. */
static char **take_texts(struct reader *reader, size_t *n_out)
{
    uint32_t n = reader_u32(reader);
    char **texts;
    uint32_t i;

    /* Each string takes five bytes at least: no array beyond what came. */
    if (reader->bad || n > (reader->len - reader->pos) / 5) {
        reader->bad = true;
        return NULL;
    }
    texts = calloc((size_t)n + 1, sizeof(*texts));
    if (texts == NULL) {
        reader->bad = true;
        return NULL;
    }
    for (i = 0; i < n && !reader->bad; i++) {
        texts[i] = take_text(reader);
    }
    *n_out = n;
    return texts;
}

static void take_stream(struct reader *reader, bool is_stdout,
                        struct guard_stream *stream)
{
    stream->kind = reader_u32(reader);
    stream->shown = reader_u32(reader);
    stream->path = take_text(reader);
    if (stream->kind > GUARD_STREAM_JOINED || stream->shown > 1 ||
        (stream->kind == GUARD_STREAM_JOINED && is_stdout)) {
        reader->bad = true;
    }
}

/* Arguments for one worker or for each: all of them a program at least. */
static void take_argvs(struct reader *reader, struct guard_plan *plan)
{
    uint32_t n = reader_u32(reader);
    size_t n_texts = 0;
    uint32_t i;

    if (reader->bad || (n != 1 && n != plan->n_workers)) {
        reader->bad = true;
        return;
    }
    plan->argvs = calloc((size_t)n + 1, sizeof(char **));
    reader->bad = plan->argvs == NULL;
    for (i = 0; i < n && !reader->bad; i++) {
        plan->argvs[i] = take_texts(reader, &n_texts);
        plan->n_argvs = i + 1;
        reader->bad = reader->bad || n_texts == 0;
    }
}

static void take_cpus(struct reader *reader, struct guard_plan *plan)
{
    plan->cpu_bytes = reader_u32(reader);
    if (plan->cpu_bytes > GUARD_CPU_BYTES_MAX) {
        reader->bad = true;
    } else if (plan->cpu_bytes > 0) {
        plan->cpus =
            reader_bytes(reader, (size_t)plan->n_workers * plan->cpu_bytes)
                .data;
    }
}

int guard_plan_decode(const uint8_t *data, size_t len,
                      struct guard_plan *plan_out)
{
    struct reader reader = { .data = data, .len = len };
    struct guard_plan plan = { 0 };
    size_t unused;
    uint32_t n;
    uint32_t i;

    n = reader_u32(&reader);
    plan.stdin_worker = reader_u32(&reader);
    plan.path = take_text(&reader);
    plan.keep = take_text(&reader);
    plan.base_env = take_texts(&reader, &plan.n_base_env);
    if (!reader.bad && n <= GUARD_WORKERS_MAX) {
        plan.worker_env = calloc((size_t)n + 1, sizeof(char **));
        plan.streams = calloc((size_t)n + 1, sizeof(*plan.streams));
    }
    if (plan.worker_env == NULL || plan.streams == NULL) {
        guard_plan_destroy(&plan);
        return -EPROTO;
    }
    plan.n_workers = n;
    take_argvs(&reader, &plan);
    take_cpus(&reader, &plan);
    for (i = 0; i < n && !reader.bad; i++) {
        take_stream(&reader, true, &plan.streams[i][GUARD_OUT]);
        take_stream(&reader, false, &plan.streams[i][GUARD_ERR]);
        plan.worker_env[i] = take_texts(&reader, &unused);
    }
    if (reader.bad || reader.pos != len) {
        guard_plan_destroy(&plan);
        return -EPROTO;
    }
    *plan_out = plan;
    return 0;
}

void guard_plan_destroy(struct guard_plan *plan)
{
    uint32_t i;

    for (i = 0; i < plan->n_workers && plan->worker_env != NULL; i++) {
        free(plan->worker_env[i]);
    }
    free(plan->worker_env);
    free(plan->streams);
    for (i = 0; i < plan->n_argvs; i++) {
        free(plan->argvs[i]);
    }
    free(plan->argvs);
    free(plan->base_env);
    *plan = (struct guard_plan){ 0 };
}
