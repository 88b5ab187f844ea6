/*
 * Reaching a store: every address in turn, again and again until the deadline,
 * and finding out which dialect it speaks.
 */
#ifndef FLAUNCH_WORKER_STORE_DIAL_H
#define FLAUNCH_WORKER_STORE_DIAL_H

#include "common/err.h"
#include "common/store_proto.h"

#include <stdint.h>

/* Which dialect to speak. */
enum store_wanted {
    STORE_WANT_D, /* PyTorch 2.2 and later, and flaunch */
    STORE_WANT_A, /* 1.9 to 2.0 */
    STORE_WANT_C, /* 2.1 */
    STORE_WANT_ANY,
};

/* "2.2", "1.13", "2.1", "auto": 0 or -EINVAL. */
int store_wanted_parse(const char *text, enum store_wanted *wanted_out);

/*
 * Connect, every address of host once.
 *
 * Returns a descriptor with dialect_out, or a negative errno with a sentence
 * that names host and port; -EPROTO when what listens there is no such store.
 * Asked for ANY, a server older than 2.2 costs two seconds, in which it answers
 * nobody else.
 */
int store_dial(const char *host, uint16_t port, enum store_wanted wanted,
               uint64_t deadline_ms, enum store_dialect *dialect_out,
               struct err *err);

/* The same, trying again with growing pauses while nobody listens there. */
int store_dial_patiently(const char *host, uint16_t port,
                         enum store_wanted wanted, uint64_t deadline_ms,
                         enum store_dialect *dialect_out, struct err *err);

#endif
