#include "worker/token.h"

#include "common/clock.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

void token_make(char token_out[TOKEN_LEN + 1])
{
    uint8_t raw[TOKEN_LEN / 2];
    size_t i;

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw)) {
        uint64_t now = clock_ns() ^ (uint64_t)getpid() << 40;

        for (i = 0; i < sizeof(raw); i++) {
            raw[i] = (uint8_t)(now >> 8 * (i % 8));
        }
    }
    for (i = 0; i < sizeof(raw); i++) {
        (void)snprintf(token_out + 2 * i, 3, "%02x", raw[i]);
    }
}
