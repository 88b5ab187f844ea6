/*
 * Letting the n-th call fail. Every wrapped function counts; when the count
 * reaches the one asked for, that call fails as it would without memory or
 * descriptors.
 */
#ifndef FLAUNCH_TESTS_FAULT_WRAP_H
#define FLAUNCH_TESTS_FAULT_WRAP_H

#include <stdbool.h>

/* Count from here on, on every thread, and let call number nth (from 1) fail;
 * 0: none. */
void wrap_start(long nth);

/* Stop counting: how many calls there were. */
long wrap_stop(void);

/* Whether a call was made to fail since wrap_start. */
bool wrap_failed(void);

#endif
