/*
 * What a server answers to a client of ours: whole and a byte at a time it is
 * the same, and no string lies outside the bytes.
 */
#include "tests/fuzz/fuzz.h"
#include "worker/store_reply.h"

static void read_strings(const struct store_reply *reply, const uint8_t *data)
{
    size_t at = reply->first;
    uint64_t i;

    for (i = 0; i < reply->n_strings; i++) {
        struct bytes string = store_reply_string(data, &at);

        CHECK(string.data >= data && at <= reply->pos);
    }
    CHECK(reply->n_strings == 0 || at == reply->pos);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct store_reply whole;
    struct store_reply bytes;
    size_t len;
    int whole_rc;
    int bytes_rc = 0;

    if (size < 2) {
        return 0;
    }
    store_reply_begin(&whole,
                      (enum store_reply_kind)(data[0] % (STORE_REPLY_POP + 1)),
                      data[1]);
    bytes = whole;
    data += 2;
    size -= 2;
    whole_rc = store_reply_next(&whole, data, size);
    for (len = 0; len <= size && bytes_rc == 0; len++) {
        bytes_rc = store_reply_next(&bytes, data, len);
    }
    CHECK(whole_rc == bytes_rc);
    if (whole_rc > 0) {
        CHECK(whole.pos == bytes.pos && whole.pos <= size);
        CHECK(whole.number == bytes.number);
        if (whole.kind >= STORE_REPLY_STRINGS) {
            read_strings(&whole, data);
        }
    }
    return 0;
}
