/*
 * One client's bytes, fed whole and in pieces: the answers must be the same.
 */
#include "common/store_session.h"
#include "tests/fuzz/fuzz.h"

static void nothing(void *arg)
{
    (void)arg;
}

/* Feed in pieces whose lengths come from seed; the answers are in out. */
static int run(const uint8_t *data, size_t size, unsigned seed, struct buf *out)
{
    struct store_conf conf = STORE_CONF_DEFAULT;
    struct store *store;
    struct store_session session;
    size_t at = 0;
    int rc = 0;

    conf.max_memory = 1 << 20;
    store = store_create(&conf);
    CHECK(store != NULL);
    store_session_init(&session, store, out, nothing, NULL);
    while (at < size && rc == 0) {
        size_t piece = size - at;

        if (seed != 0) {
            seed = seed * 1103515245U + 12345U;
            piece = 1 + (seed >> 16) % 9;
            piece = piece < size - at ? piece : size - at;
        }
        rc = store_session_feed(&session, data + at, piece, NULL);
        at += piece;
    }
    store_session_destroy(&session);
    store_destroy(store);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole = { 0 };
    struct buf pieces = { 0 };
    int rc = run(data, size, 0, &whole);

    CHECK(run(data, size, 1 + (unsigned)size, &pieces) == rc);
    CHECK(whole.len == pieces.len);
    CHECK(whole.len == 0 || memcmp(whole.data, pieces.data, whole.len) == 0);
    buf_destroy(&whole);
    buf_destroy(&pieces);
    return 0;
}
