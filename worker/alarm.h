/*
 * The first failure of a group of ranks, told to all of them through the store,
 * so that nobody waits for a rank that has given up, and all say the same.
 */
#ifndef FLAUNCH_WORKER_ALARM_H
#define FLAUNCH_WORKER_ALARM_H

#include "worker/flaunch.h"
#include "worker/store_client.h"

/*
 * Tell the others an error, unless somebody was first: then error becomes
 * theirs. A store that does not answer leaves error as it is.
 *
 * prefix  of the group's keys
 */
void alarm_raise(struct store_client *client, const char *prefix,
                 struct flaunch_error *error, uint64_t deadline_ms);

/* Whether anybody has raised it, with the error. */
bool alarm_heard(struct store_client *client, const char *prefix,
                 struct flaunch_error *error_out, uint64_t deadline_ms);

#endif
