/*
 * Monotonic time: milliseconds and nanoseconds since some fixed moment, and
 * absolute deadlines in milliseconds. A stepped wall clock changes nothing.
 */
#ifndef FLAUNCH_COMMON_CLOCK_H
#define FLAUNCH_COMMON_CLOCK_H

#include <stdint.h>

#define CLOCK_NEVER UINT64_MAX

uint64_t clock_ns(void);
uint64_t clock_ms(void);

/* The same in nanoseconds, but for suspend: this one does not stand still. */
uint64_t clock_boot_ns(void);

/* Now + timeout_ms, CLOCK_NEVER when that would overflow. */
uint64_t clock_deadline(uint64_t timeout_ms);

/* The earlier of two deadlines. */
uint64_t clock_earlier(uint64_t a, uint64_t b);

/*
 * Milliseconds left for poll(2): 0 when the deadline has passed, -1 for
 * CLOCK_NEVER, never more than INT_MAX.
 */
int clock_poll_ms(uint64_t deadline_ms);

/* Sleep, also when signals interrupt it. */
void clock_sleep_ms(uint64_t ms);

#endif
