#include "worker/checkin_record.h"

#include "worker/nccl_env.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The texts of a record, in wire order, after the numbers. */
struct text_field {
    size_t offset;
    size_t size;
};

#define TEXT(member)                                                           \
    {                                                                          \
        offsetof(struct checkin_record, member),                               \
            sizeof(((struct checkin_record *)0)->member)                       \
    }

static const struct text_field texts[] = {
    TEXT(token),   TEXT(nonce),    TEXT(host),      TEXT(machine),
    TEXT(gpu),     TEXT(visible),  TEXT(nccl_path), TEXT(backend),
    TEXT(reached), TEXT(settings), TEXT(interface), TEXT(no_gpu),
    TEXT(error),
};

#define N_TEXTS (sizeof(texts) / sizeof(texts[0]))

int checkin_record_encode(struct buf *out, const struct checkin_record *record)
{
    const uint32_t numbers[] = {
        record->rank,          record->world_size,
        record->local_rank,    record->local_world_size,
        record->pid,           record->posted_s,
        record->nccl_version,  record->local_rank_assumed,
        record->device_plus_1,
    };
    int rc = 0;
    size_t i;

    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && rc == 0; i++) {
        rc = buf_append_u32(out, numbers[i]);
    }
    for (i = 0; i < N_TEXTS && rc == 0; i++) {
        const char *text = (const char *)record + texts[i].offset;
        size_t len = strlen(text);

        rc = buf_append_u32(out, (uint32_t)len);
        if (rc == 0) {
            rc = buf_append(out, text, len);
        }
    }
    return rc;
}

int checkin_record_decode(const uint8_t *data, size_t len,
                          struct checkin_record *record_out)
{
    struct reader reader = { .data = data, .len = len };
    struct checkin_record record = { 0 };
    size_t i;

    record.rank = reader_u32(&reader);
    record.world_size = reader_u32(&reader);
    record.local_rank = reader_u32(&reader);
    record.local_world_size = reader_u32(&reader);
    record.pid = reader_u32(&reader);
    record.posted_s = reader_u32(&reader);
    record.nccl_version = reader_u32(&reader);
    record.local_rank_assumed = reader_u32(&reader) != 0;
    record.device_plus_1 = reader_u32(&reader);
    for (i = 0; i < N_TEXTS; i++) {
        uint32_t text_len = reader_u32(&reader);
        struct bytes text = reader_bytes(&reader, text_len);

        if (reader.bad || text_len >= texts[i].size ||
            memchr(text.data, '\0', text_len) != NULL) {
            return -EPROTO;
        }
        memcpy((char *)&record + texts[i].offset, text.data, text_len);
    }
    if (reader.pos != len) {
        return -EPROTO;
    }
    *record_out = record;
    return 0;
}

static void add(char text[VERDICT_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(char text[VERDICT_MAX], const char *format, ...)
{
    size_t len = strlen(text);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text + len, VERDICT_MAX - len, format, args);
    va_end(args);
}

static bool is_here(const struct checkin_record *seat)
{
    return seat->token[0] != '\0';
}

bool checkin_same_machine(const struct checkin_record *a,
                          const struct checkin_record *b)
{
    return strcmp(a->host, b->host) == 0 && strcmp(a->machine, b->machine) == 0;
}

/* Whether one rank alone says what is wrong. */
static bool judge_one(const struct checkin_record *seat, uint32_t world_size,
                      char text[VERDICT_MAX])
{
    if (seat->error[0] != '\0') {
        add(text, "rank %u on %s: %s", seat->rank, seat->host, seat->error);
    } else if (seat->world_size != world_size) {
        add(text, "rank %u on %s has WORLD_SIZE %u and rank 0 has %u",
            seat->rank, seat->host, seat->world_size, world_size);
    }
    return text[0] != '\0';
}

static bool has_gpu(const struct checkin_record *seat)
{
    return seat->gpu[0] != '\0';
}

/* "auto" came to different backends: somebody has no GPU. */
static void judge_auto(const struct checkin_record *a,
                       const struct checkin_record *b, char text[VERDICT_MAX])
{
    const struct checkin_record *without = a->no_gpu[0] != '\0' ? a : b;
    const struct checkin_record *with = without == a ? b : a;

    add(text, "rank %u on %s has no GPU (%s), and rank %u on %s uses one",
        without->rank, without->host, without->no_gpu, with->rank, with->host);
}

/* Whether two ranks differ in what all must have in common. */
static bool judge_common(const struct checkin_record *a,
                         const struct checkin_record *b, char text[VERDICT_MAX])
{
    if (strcmp(a->backend, b->backend) != 0 &&
        (a->no_gpu[0] != '\0' || b->no_gpu[0] != '\0')) {
        judge_auto(a, b, text);
    } else if (strcmp(a->backend, b->backend) != 0) {
        add(text, "rank %u asks for the backend %s and rank %u for %s", a->rank,
            a->backend, b->rank, b->backend);
    } else if (a->nccl_version != b->nccl_version) {
        add(text,
            "rank %u on %s has NCCL version %u (%s) and rank %u on %s has %u "
            "(%s)",
            a->rank, a->host, a->nccl_version, a->nccl_path, b->rank, b->host,
            b->nccl_version, b->nccl_path);
    }
    return text[0] != '\0';
}

/* Whether two ranks, neighbours in the order of by_place, use one thing that
 * is for one of them. */
static bool judge_neighbours(const struct checkin_record *a,
                             const struct checkin_record *b,
                             char text[VERDICT_MAX])
{
    if (has_gpu(a) && strcmp(a->backend, "nccl") == 0 &&
        strcmp(a->gpu, b->gpu) == 0 &&
        (strncmp(a->gpu, "GPU-", 4) == 0 || checkin_same_machine(a, b))) {
        add(text,
            "ranks %u and %u on %s both use the GPU %s (as cuda:%d and cuda:%d "
            "with CUDA_VISIBLE_DEVICES=%s and %s)",
            a->rank, b->rank, a->host, a->gpu, (int)a->device_plus_1 - 1,
            (int)b->device_plus_1 - 1, a->visible, b->visible);
    } else if (checkin_same_machine(a, b) && a->local_rank_assumed &&
               b->local_rank_assumed) {
        add(text,
            "ranks %u and %u are both on %s and LOCAL_RANK is not set: set "
            "LOCAL_RANK and LOCAL_WORLD_SIZE for each",
            a->rank, b->rank, a->host);
    }
    return text[0] != '\0';
}

/* What is sorted. */
struct present {
    const struct checkin_record *seat;
};

/* By GPU, then by machine, those who assumed their local rank together. */
static int by_place(const void *left, const void *right)
{
    const struct checkin_record *a = ((const struct present *)left)->seat;
    const struct checkin_record *b = ((const struct present *)right)->seat;
    int order = strcmp(a->gpu, b->gpu);

    if (order == 0) {
        order = strcmp(a->machine, b->machine);
    }
    if (order == 0) {
        order = strcmp(a->host, b->host);
    }
    if (order == 0) {
        order = (int)a->local_rank_assumed - (int)b->local_rank_assumed;
    }
    if (order == 0) {
        order = a->rank < b->rank ? -1 : a->rank > b->rank;
    }
    return order;
}

/* What ranks of one job must and must not have in common. */
static bool judge_pairs(const struct checkin_record *seats, uint32_t world_size,
                        char text[VERDICT_MAX])
{
    struct present *here = calloc((size_t)world_size + 1, sizeof(*here));
    uint32_t n = 0;
    uint32_t i;

    if (here == NULL) {
        add(text, "rank 0 is out of memory");
        return true;
    }
    for (i = 0; i < world_size; i++) {
        if (is_here(&seats[i])) {
            here[n++].seat = &seats[i];
        }
    }
    for (i = 1; i < n && text[0] == '\0'; i++) {
        (void)judge_common(here[0].seat, here[i].seat, text);
    }
    qsort(here, n, sizeof(*here), by_place);
    for (i = 1; i < n && text[0] == '\0'; i++) {
        (void)judge_neighbours(here[i - 1].seat, here[i].seat, text);
    }
    free(here);
    return text[0] != '\0';
}

static void name_missing(const struct checkin_record *seats,
                         uint32_t world_size, uint32_t n_missing,
                         double waited_s, char text[VERDICT_MAX])
{
    const uint32_t shown_max = 16;
    uint32_t shown = 0;
    uint32_t i;

    add(text, "%s", n_missing == 1 ? "rank" : "ranks");
    for (i = 0; i < world_size && shown < shown_max; i++) {
        if (!is_here(&seats[i])) {
            add(text, "%s %u", shown > 0 ? "," : "", i);
            shown++;
        }
    }
    if (n_missing > shown) {
        add(text, " and %u more", n_missing - shown);
    }
    add(text, " of %u did not come within %.1f s; here %s", world_size,
        waited_s, world_size - n_missing == 1 ? "is" : "are");
    shown = 0;
    for (i = 0; i < world_size && shown < shown_max; i++) {
        if (is_here(&seats[i])) {
            add(text, "%s rank %u on %s", shown > 0 ? "," : "", i,
                seats[i].host);
            shown++;
        }
    }
    if (world_size - n_missing > shown) {
        add(text, " and %u more", world_size - n_missing - shown);
    }
}

bool checkin_judge(const struct checkin_record *seats, uint32_t world_size,
                   double waited_s, char text_out[VERDICT_MAX])
{
    uint32_t n_missing = 0;
    uint32_t i;

    text_out[0] = '\0';
    for (i = 0; i < world_size; i++) {
        n_missing += !is_here(&seats[i]);
        if (is_here(&seats[i]) && judge_one(&seats[i], world_size, text_out)) {
            return true;
        }
    }
    if (n_missing == 0) {
        (void)judge_pairs(seats, world_size, text_out);
        return true;
    }
    if (waited_s > 0) {
        if (!judge_pairs(seats, world_size, text_out)) {
            name_missing(seats, world_size, n_missing, waited_s, text_out);
        }
        return true;
    }
    return false;
}

/* One that other hosts cannot reach, in a job of several. */
static void warn_interface(const struct checkin_record *seats,
                           uint32_t world_size, char text[VERDICT_MAX])
{
    bool several = false;
    uint32_t i;

    for (i = 1; i < world_size && !several; i++) {
        several = !checkin_same_machine(&seats[0], &seats[i]);
    }
    for (i = 0; i < world_size && several; i++) {
        if (seats[i].interface[0] != '\0' &&
            nccl_env_interface_is_local(seats[i].interface)) {
            add(text,
                "nccl: rank %u on %s is likely to use the interface %s, which "
                "other hosts may not reach: set NCCL_SOCKET_IFNAME\n",
                i, seats[i].host, seats[i].interface);
            return;
        }
    }
}

static void warn_settings(const struct checkin_record *seats,
                          uint32_t world_size, char text[VERDICT_MAX])
{
    uint32_t i;

    for (i = 1; i < world_size; i++) {
        if (strcmp(seats[i].settings, seats[0].settings) != 0) {
            add(text,
                "nccl: settings differ, which may hang: rank 0 on %s has "
                "\"%s\" and rank %u on %s \"%s\"\n",
                seats[0].host, seats[0].settings, i, seats[i].host,
                seats[i].settings);
            return;
        }
    }
}

void checkin_warn(const struct checkin_record *seats, uint32_t world_size,
                  char text_out[VERDICT_MAX])
{
    text_out[0] = '\0';
    warn_settings(seats, world_size, text_out);
    warn_interface(seats, world_size, text_out);
}
