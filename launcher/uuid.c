#include "launcher/uuid.h"

#include "common/clock.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

void uuid_make(char text_out[UUID_TEXT_SIZE])
{
    uint8_t bytes[16] = { 0 };
    size_t n = 0;
    size_t i;

    if (getrandom(bytes, sizeof(bytes), GRND_NONBLOCK) < 0) {
        /* Early in the boot of a machine: unique there. */
        const uint64_t parts[2] = { clock_ns(), (uint64_t)getpid() };

        memcpy(bytes, parts, sizeof(bytes));
    }
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40); /* version */
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80); /* variant */
    for (i = 0; i < sizeof(bytes); i++) {
        n += (size_t)snprintf(text_out + n, UUID_TEXT_SIZE - n, "%s%02x",
                              i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                              bytes[i]);
    }
}
