/*
 * A record another rank left in the store, and the verdict over it.
 */
#include "tests/fuzz/fuzz.h"
#include "worker/checkin_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct checkin_record seats[2] = { { .token = "t", .world_size = 2 } };
    char text[VERDICT_MAX];
    struct buf out = { 0 };

    if (checkin_record_decode(data, size, &seats[1]) == 0) {
        CHECK(checkin_record_encode(&out, &seats[1]) == 0);
        /* A flag may come as any number, and goes out as 1. */
        CHECK(out.len == size);
        (void)checkin_judge(seats, 2, 1, text);
        CHECK(strlen(text) < VERDICT_MAX);
    }
    buf_destroy(&out);
    return 0;
}
