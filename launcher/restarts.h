/*
 * How often a job that fails is started again, and after what wait; plain
 * arithmetic.
 */
#ifndef FLAUNCH_LAUNCHER_RESTARTS_H
#define FLAUNCH_LAUNCHER_RESTARTS_H

#include <stdbool.h>
#include <stdint.h>

/* An attempt shorter than this makes the next one wait. */
#define RESTARTS_SHORT_MS 10000
/* The waits: 1, 2, 4 ... at most 30 s. */
#define RESTARTS_WAIT_MAX_MS 30000

struct restarts {
    uint32_t max;
    uint32_t used;
    uint64_t first_wait_ms; /* 0: never wait */
    uint64_t next_wait_ms;
};

void restarts_init(struct restarts *restarts, uint32_t max,
                   uint64_t first_wait_ms);

/*
 * An attempt has failed after lasted_ms. True when another one may begin,
 * wait_out milliseconds later; it is used up then.
 */
bool restarts_take(struct restarts *restarts, uint64_t lasted_ms,
                   uint64_t *wait_out);

#endif
