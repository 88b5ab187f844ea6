/*
 * Filling in a struct flaunch_error.
 */
#ifndef FLAUNCH_WORKER_FAIL_H
#define FLAUNCH_WORKER_FAIL_H

#include "common/err.h"
#include "worker/flaunch.h"

/* Write domain, code and a sentence; error may be NULL. Returns code. */
int fail_set(struct flaunch_error *error, enum flaunch_domain domain, int code,
             const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Pass on what went wrong with the store. Returns its code. */
int fail_store(struct flaunch_error *error, const struct err *err);

#endif
