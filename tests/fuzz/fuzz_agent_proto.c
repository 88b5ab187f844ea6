/*
 * Frames between agents: what is read is written alike, and bytes that come in
 * two pieces mean the same as in one.
 */
#include "launcher/agent_proto.h"
#include "tests/fuzz/fuzz.h"

static void check_preface(const uint8_t *data, size_t size)
{
    uint32_t version = 0;
    size_t len;

    for (len = 0; len <= size && len <= AGENT_PREFACE_LEN; len++) {
        int rc = agent_preface_decode(data, len, &version);

        CHECK(rc <= 0 || len >= AGENT_PREFACE_LEN);
        CHECK(rc != 0 || len < AGENT_PREFACE_LEN);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader reader = { .data = data, .len = size };
    struct agent_msg msg;
    struct buf out = { 0 };
    size_t begin = 0;

    check_preface(data, size);
    while (agent_msg_decode(&reader, &msg) > 0) {
        struct reader cut = { .data = data + begin,
                              .len = reader.pos - begin - 1 };
        struct agent_msg copy;

        CHECK(agent_msg_decode(&cut, &copy) == 0);
        out.len = 0;
        CHECK(agent_msg_encode(&out, &msg) == 0);
        CHECK(out.len == reader.pos - begin);
        CHECK(memcmp(out.data, data + begin, out.len) == 0);
        begin = reader.pos;
    }
    buf_destroy(&out);
    return 0;
}
