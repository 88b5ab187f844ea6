/*
 * One client's bytes, of any dialect, fed whole and in pieces: the answers must
 * be the same, and memory within its limit. The first byte says which old
 * clients are expected.
 */
#include "common/store_session.h"
#include "tests/fuzz/fuzz.h"

#define MEMORY (1U << 20)

static void nothing(void *arg)
{
    (void)arg;
}

/* Take replies out as a client does that reads, and go on. */
static int drain(struct store_session *session, struct buf *out,
                 struct buf *total)
{
    int rc = 0;

    while (rc == 0 && store_session_is_held(session)) {
        CHECK(buf_append(total, out->data, out->len) == 0);
        out->len = 0;
        rc = store_session_feed(session, NULL, 0, NULL);
    }
    CHECK(buf_append(total, out->data, out->len) == 0);
    out->len = 0;
    return rc;
}

/* Feed in pieces whose lengths come from seed; the answers are in total. */
static int run(const uint8_t *data, size_t size, enum store_legacy legacy,
               unsigned seed, struct buf *total)
{
    struct store_conf conf = STORE_CONF_DEFAULT;
    struct store_session session;
    struct buf out = { 0 };
    struct store *store;
    size_t at = 0;
    int rc = 0;

    conf.max_memory = MEMORY;
    conf.max_keys = 1000;
    conf.legacy = legacy;
    store = store_create(&conf);
    CHECK(store != NULL);
    store_session_init(&session, store, &out, nothing, NULL);
    while (at < size && rc == 0) {
        size_t piece = size - at;

        if (seed != 0) {
            seed = seed * 1103515245U + 12345U;
            piece = 1 + (seed >> 16) % 9;
            piece = piece < size - at ? piece : size - at;
        }
        rc = store_session_feed(&session, data + at, piece, NULL);
        if (rc == 0) {
            rc = drain(&session, &out, total);
        }
        at += piece;
    }
    CHECK(buf_append(total, out.data, out.len) == 0);
    CHECK(store_memory(store) <= MEMORY);
    store_session_destroy(&session);
    store_destroy(store);
    buf_destroy(&out);
    return rc;
}

/* LIST_KEYS (17) gives keys in no order: then only the same bytes in all. */
static void compare(const struct buf *a, const struct buf *b, bool ordered)
{
    long n[256] = { 0 };
    size_t i;

    CHECK(a->len == b->len);
    CHECK(!ordered || a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
    for (i = 0; i < a->len; i++) {
        n[a->data[i]]++;
        n[b->data[i]]--;
    }
    for (i = 0; i < 256; i++) {
        CHECK(n[i] == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole = { 0 };
    struct buf pieces = { 0 };
    enum store_legacy legacy;
    int rc;

    if (size == 0) {
        return 0;
    }
    legacy = (enum store_legacy)(data[0] % 3);
    rc = run(data + 1, size - 1, legacy, 0, &whole);
    /* Only an end for want of memory may depend on the pieces, since a request
     * that is not whole has to be kept. */
    if (run(data + 1, size - 1, legacy, 1 + (unsigned)size, &pieces) == rc) {
        compare(&whole, &pieces, memchr(data, 17, size) == NULL);
    } else {
        CHECK(size > MEMORY / 4);
    }
    buf_destroy(&whole);
    buf_destroy(&pieces);
    return 0;
}
