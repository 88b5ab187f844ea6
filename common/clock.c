#include "common/clock.h"

#include <errno.h>
#include <limits.h>
#include <time.h>

uint64_t clock_ns(void)
{
    struct timespec now = { 0 };

    /* Cannot fail: the clock exists and the address is good. */
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

uint64_t clock_boot_ns(void)
{
    struct timespec now = { 0 };

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

uint64_t clock_ms(void)
{
    return clock_ns() / 1000000U;
}

uint64_t clock_deadline(uint64_t timeout_ms)
{
    uint64_t now_ms = clock_ms();

    return timeout_ms < CLOCK_NEVER - now_ms ? now_ms + timeout_ms
                                             : CLOCK_NEVER;
}

uint64_t clock_earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int clock_poll_ms(uint64_t deadline_ms)
{
    uint64_t now_ms = clock_ms();

    if (deadline_ms == CLOCK_NEVER) {
        return -1;
    }
    if (deadline_ms <= now_ms) {
        return 0;
    }
    return deadline_ms - now_ms > INT_MAX ? INT_MAX
                                          : (int)(deadline_ms - now_ms);
}

void clock_sleep_ms(uint64_t ms)
{
    struct timespec left = { .tv_sec = (time_t)(ms / 1000),
                             .tv_nsec = (long)(ms % 1000) * 1000000L };

    while (nanosleep(&left, &left) < 0 && errno == EINTR) {
    }
}
