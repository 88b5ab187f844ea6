/*
 * A scenario in which every wrapped call fails in turn.
 */
#ifndef FLAUNCH_TESTS_FAULT_EVERY_FAULT_H
#define FLAUNCH_TESTS_FAULT_EVERY_FAULT_H

#include "tests/fault/wrap.h"
#include "tests/unit/unit.h"

#define ROUNDS_MAX 2000
#define SHORT_MS 1000
#define LONG_MS 60000

static uint64_t limit_ms;

/*
 * Run scenario with every call failing in turn until one run has no fault;
 * that one must succeed. A client that a fault cut off gives up soon; a run
 * that was only slow is tried again with all the time it needs.
 */
static inline void every_fault(bool (*scenario)(void))
{
    long n;

    for (n = 1; n < ROUNDS_MAX; n++) {
        bool well;

        limit_ms = SHORT_MS;
        wrap_start(n);
        well = scenario();
        (void)wrap_stop();
        if (!wrap_failed()) {
            limit_ms = LONG_MS;
            assert_true(well || scenario());
            return;
        }
    }
    fail_msg("still failing after %d rounds", ROUNDS_MAX);
}

#endif
