/*
 * Users that workers run as: a worker may have changed its own, as with sudo.
 */
#ifndef FLAUNCH_LAUNCHER_WORKER_USERS_H
#define FLAUNCH_LAUNCHER_WORKER_USERS_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether a process that descends from this one is a user's; any thread may
 * ask. It reads all of /proc. */
bool worker_users_has(uid_t uid);

#endif
