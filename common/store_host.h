/*
 * The store on a thread and loop of its own, so that nothing else a process
 * does delays a key. Used by flaunch and by libflaunch.
 */
#ifndef FLAUNCH_COMMON_STORE_HOST_H
#define FLAUNCH_COMMON_STORE_HOST_H

#include "common/store_server.h"

struct store_host;

/*
 * Serve a new store, as setup says; its callbacks run on the host's thread. All
 * signals are blocked there.
 *
 * Returns 0 with host_out; or a negative errno with a sentence, and then the
 * listening sockets are closed as well: they belong to the host from this call
 * on.
 */
int store_host_start(const struct store_setup *setup,
                     struct store_host **host_out, struct err *err);

/* Have it log, for FLAUNCH_DEBUG=detail, who waits for which keys; host may be
 * NULL. */
void store_host_say_waiting(struct store_host *host);

/* Cut all connections, end the thread, free host; host may be NULL. */
void store_host_stop(struct store_host *host);

#endif
