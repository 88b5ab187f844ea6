/*
 * Filling in a struct flaunch_error.
 */
#ifndef FLAUNCH_WORKER_FAIL_H
#define FLAUNCH_WORKER_FAIL_H

#include "worker/flaunch.h"

/* Write domain, code and a sentence; error may be NULL. Returns code. */
int fail_set(struct flaunch_error *error, enum flaunch_domain domain, int code,
             const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
