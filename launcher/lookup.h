/*
 * A host name to addresses on a thread of its own, which is left to itself
 * when nobody waits for it any more: nothing can interrupt a look-up.
 */
#ifndef FLAUNCH_LAUNCHER_LOOKUP_H
#define FLAUNCH_LAUNCHER_LOOKUP_H

#include "common/err.h"

#include <netdb.h>
#include <uv.h>

struct lookup;

/*
 * list  the addresses, the callee's to free with freeaddrinfo; or NULL, and err
 *       says why
 */
typedef void lookup_done_fn(struct addrinfo *list, const struct err *err,
                            void *arg);

/*
 * Look up host. done runs once, from the loop, unless lookup_stop is called
 * before; lookup_out is gone then. Returns 0, or a negative errno with a
 * sentence, and then done never runs.
 */
int lookup_start(uv_loop_t *loop, const char *host, uint16_t port,
                 lookup_done_fn *done, void *arg, struct lookup **lookup_out,
                 struct err *err);

/* Wait no longer; lookup may be NULL, and is gone. */
void lookup_stop(struct lookup *lookup);

#endif
