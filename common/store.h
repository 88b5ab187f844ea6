/*
 * Keys, values and those who wait for keys; no sockets, no time.
 *
 * Keys and values are bytes with a length. Memory grows with what is stored;
 * above limit_bytes (keys, values and 128 bytes an entry) a request fails.
 */
#ifndef FLAUNCH_COMMON_STORE_H
#define FLAUNCH_COMMON_STORE_H

#include "common/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All keys and values of one store, unless store_create is told otherwise. */
#define STORE_MEMORY_MAX (1024ULL * 1024 * 1024)

struct store;
struct store_link;

/*
 * One who waits for keys. Zero-initialise and set done and arg; the store
 * owns the rest between store_wait and the call of done. It must not move.
 */
struct store_waiter {
    void (*done)(struct store_waiter *waiter);
    void *arg;
    size_t n_missing;
    struct store_link *links;
};

/* A new, empty store, or NULL without memory. limit_bytes 0: the default. */
struct store *store_create(uint64_t limit_bytes);

/* Free all; waiters still pending are forgotten without a call. */
void store_destroy(struct store *store);

/*
 * Each of these that writes a key calls done of the waiters it completes,
 * before it returns. All return 0 or a negative errno: -ENOMEM, -ENOSPC above
 * the limit; then nothing has changed.
 */
int store_set(struct store *store, struct bytes key, struct bytes value);
int store_append(struct store *store, struct bytes key, struct bytes suffix);

/*
 * Add to a decimal counter; a missing key counts as 0. The old text is read
 * as strtoll base 10 does; what follows the digits is ignored. Sums wrap.
 * -EINVAL for no digits, -ERANGE outside int64.
 */
int store_add(struct store *store, struct bytes key, int64_t delta,
              int64_t *value_out);

/*
 * Set key to desired if it holds expected, or if it is missing and expected
 * is empty. result_out, which is borrowed from the store or the arguments, is
 * what a TCPStore answers: the value afterwards; expected where the key is
 * missing and stays so.
 */
int store_compare_set(struct store *store, struct bytes key,
                      struct bytes expected, struct bytes desired,
                      struct bytes *result_out);

/* The value, borrowed until the next write; false where there is no key. */
bool store_get(const struct store *store, struct bytes key,
               struct bytes *value_out);

/* Remove a key; true if there was one. Wakes nobody. */
bool store_delete(struct store *store, struct bytes key);

/* How many keys there are. */
size_t store_n_keys(const struct store *store);

/*
 * Wait for a key that is missing now. Call it once for each key; a key that
 * exists adds nothing. A key counts as soon as it is written once, also if it
 * is deleted before the others appear. After the last call n_missing says
 * whether done will come (> 0) or all were there.
 *
 * Returns 0 or a negative errno; then call store_wait_cancel.
 */
int store_wait(struct store *store, struct store_waiter *waiter,
               struct bytes key);

/* The keys a waiter still misses, by number from 0; false after the last. The
 * bytes are the store's. */
bool store_waiter_key(const struct store_waiter *waiter, size_t number,
                      struct bytes *key_out);

/* Forget the wait; done will not run. Allowed at any time. */
void store_wait_cancel(struct store *store, struct store_waiter *waiter);

#endif
