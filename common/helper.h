/*
 * A call that may hang, on a thread that is left to itself when its time is up:
 * look-ups of names, drivers, other people's libraries.
 */
#ifndef FLAUNCH_COMMON_HELPER_H
#define FLAUNCH_COMMON_HELPER_H

#include <stdint.h>

struct helper;

typedef void helper_fn(void *arg);

/*
 * Run run(arg) on a thread of its own, on which no signal is handled.
 *
 * destroy  called once with arg when run has ended and helper_release was
 *          called, on either thread
 *
 * Returns 0, or a negative errno and then arg stays the caller's.
 */
int helper_start(helper_fn *run, helper_fn *destroy, void *arg,
                 struct helper **helper_out);

/* Wait until run has ended: 0, or -ETIMEDOUT. */
int helper_wait(struct helper *helper, uint64_t deadline_ms);

/* Give up arg, which the caller may not touch any more, and helper. */
void helper_release(struct helper *helper);

#endif
