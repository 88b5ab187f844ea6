/*
 * Host names to addresses, with a deadline.
 */
#ifndef FLAUNCH_COMMON_RESOLVE_H
#define FLAUNCH_COMMON_RESOLVE_H

#include "common/err.h"

#include <netdb.h>
#include <stdint.h>

/*
 * The TCP addresses of host; free them with freeaddrinfo. Numbers are read at
 * once; a name is looked up on a thread that is left to itself when the
 * deadline passes, since nothing can interrupt a look-up.
 *
 * Returns 0 or a negative errno with a sentence: -ETIMEDOUT, -EHOSTUNREACH
 * where the name has no address (now), -ENOMEM.
 */
int resolve_host(const char *host, uint16_t port, uint64_t deadline_ms,
                 struct addrinfo **list_out, struct err *err);

/* The same without a deadline, on this thread. */
int resolve_blocking(const char *host, uint16_t port,
                     struct addrinfo **list_out, struct err *err);

#endif
