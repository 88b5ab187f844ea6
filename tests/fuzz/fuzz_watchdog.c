/*
 * Requests for timers, line by line, and the clock in between: a line "@N" sets
 * it to N seconds.
 */
#include "launcher/watchdog.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

/* Whoever has expired is gone with all timers, and nobody was due before. */
static void expire(struct watchdog *watchdog, double now)
{
    struct watchdog_timer timer;
    double next = 0;
    size_t i;

    while (watchdog_expired(watchdog, now, &timer)) {
        CHECK(timer.expires_s <= now && timer.pid > 0 && timer.signo >= 0);
        for (i = 0; i < watchdog->n; i++) {
            CHECK(watchdog->timers[i].pid != timer.pid);
        }
    }
    CHECK(!watchdog_next(watchdog, &next) || next > now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct watchdog watchdog = { 0 };
    size_t at = 0;

    while (at < size) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t len = end != NULL ? (size_t)(end - data) - at : size - at;
        char text[32] = "";
        struct err err;
        size_t before = watchdog.n;

        if (data[at] == '@') {
            memcpy(text, data + at + 1,
                   len - 1 < sizeof(text) ? len - 1 : sizeof(text) - 1);
            expire(&watchdog, (double)strtol(text, NULL, 10));
        } else if (watchdog_take(&watchdog, (const char *)data + at, len,
                                 &err) < 0) {
            CHECK(watchdog.n == before);
        }
        CHECK(watchdog.n <= before + 1 && watchdog.n <= WATCHDOG_TIMERS_MAX);
        at += len + 1;
    }
    watchdog_clear(&watchdog);
    return 0;
}
