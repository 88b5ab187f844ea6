/*
 * The store on a thread and loop of its own, so that nothing else a process
 * does delays a key. Used by flaunch and by libflaunch.
 */
#ifndef FLAUNCH_COMMON_STORE_HOST_H
#define FLAUNCH_COMMON_STORE_HOST_H

#include "common/err.h"
#include "common/port_demux.h"

struct store_host;

/*
 * Serve a new store on listen_fd (see net_listen).
 *
 * demux  gets the connections of agents, on the host's thread; it must live as
 *        long as the host. NULL: an agent is a client that speaks nonsense
 *
 * Returns 0 with host_out; or a negative errno with a sentence, and then
 * listen_fd is closed as well: it belongs to the host from this call on.
 * All signals are blocked in the thread.
 */
int store_host_start(int listen_fd, const struct port_demux *demux,
                     struct store_host **host_out, struct err *err);

/* Have it log, for FLAUNCH_DEBUG=detail, who waits for which keys; host may be
 * NULL. */
void store_host_say_waiting(struct store_host *host);

/* Cut all connections, end the thread, free host; host may be NULL. */
void store_host_stop(struct store_host *host);

#endif
