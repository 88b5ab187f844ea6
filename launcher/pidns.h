/*
 * A PID namespace for the guard: when its first process, the guard, ends, the
 * kernel itself kills everything in it.
 */
#ifndef FLAUNCH_LAUNCHER_PIDNS_H
#define FLAUNCH_LAUNCHER_PIDNS_H

#include "common/err.h"

#include <sys/types.h>

/*
 * As fork(2), the child being process 1 of a new PID namespace with a /proc of
 * its own; as an ordinary user by way of a user namespace, in which it keeps
 * its user and group. Single-threaded callers only.
 *
 * Returns the child's pid (as seen here), 0 in the child, or a negative errno
 * with a sentence, also where the child could not set itself up.
 */
pid_t pidns_fork(struct err *err);

#endif
