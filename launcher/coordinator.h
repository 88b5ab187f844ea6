/*
 * Whether a job that failed is started again, and when; a pure state machine
 * with time passed in.
 */
#ifndef FLAUNCH_LAUNCHER_COORDINATOR_H
#define FLAUNCH_LAUNCHER_COORDINATOR_H

#include <stdbool.h>
#include <stdint.h>

/* An attempt shorter than this makes the next one wait. */
#define COORDINATOR_SHORT_MS 10000
/* The waits: 1, 2, 4 ... at most 30 s. */
#define COORDINATOR_BACKOFF_MAX_MS 30000

struct coordinator {
    uint32_t max_restarts;
    uint64_t backoff_first_ms; /* 0: never wait */
    uint32_t restarts;         /* used up so far: the number of this attempt */
    uint64_t next_backoff_ms;
};

/* How an attempt ended. */
struct attempt_end {
    bool failed;   /* a worker failed */
    bool for_good; /* nobody may try again: a stop signal, a time limit,
                    * flaunch's own failure, a program that cannot run */
    uint64_t lasted_ms;
};

void coordinator_init(struct coordinator *coordinator, uint32_t max_restarts,
                      uint64_t backoff_first_ms);

/*
 * An attempt has ended and nothing of it is left. Returns true when another
 * one begins after delay_out milliseconds; the restart count has grown then.
 */
bool coordinator_attempt_ended(struct coordinator *coordinator,
                               const struct attempt_end *end,
                               uint64_t *delay_out);

#endif
