/*
 * Packets and plans between agent and guard: what is read is written alike.
 */
#include "launcher/guard_proto.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader reader = { .data = data, .len = size };
    struct guard_plan plan;
    struct guard_msg msg;
    struct buf out = { 0 };

    while (guard_msg_decode(&reader, &msg) > 0) {
        struct reader again;
        struct guard_msg copy;

        out.len = 0;
        CHECK(guard_msg_encode(&out, &msg) == 0);
        again = (struct reader){ .data = out.data, .len = out.len };
        CHECK(guard_msg_decode(&again, &copy) == 1);
        CHECK(memcmp(&msg, &copy, sizeof(msg)) == 0);
    }
    if (guard_plan_decode(data, size, &plan) == 0) {
        out.len = 0;
        CHECK(guard_plan_encode(&out, &plan) == 0);
        CHECK(out.len == size && memcmp(out.data, data, size) == 0);
        guard_plan_destroy(&plan);
    }
    buf_destroy(&out);
    return 0;
}
