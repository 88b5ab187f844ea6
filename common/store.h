/*
 * Keys, values, queues, and those who wait for keys; no sockets, no time.
 *
 * Keys and values are bytes with a length. Memory grows with what is stored;
 * above the limits of its struct store_conf a request fails, and then nothing
 * has changed. What the requests mean to the letter: flaunch-store(7).
 */
#ifndef FLAUNCH_COMMON_STORE_H
#define FLAUNCH_COMMON_STORE_H

#include "common/buf.h"
#include "common/store_conf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct store;
struct store_entry;
struct store_link;
LIST_HEAD(store_links, store_link);

/*
 * One who waits for keys. Zero-initialise and set done and arg; the store
 * owns the rest between store_wait and the call of done. It must not move.
 */
struct store_waiter {
    void (*done)(struct store_waiter *waiter);
    void *arg;
    size_t n_missing;
    struct store_links links;
};

enum store_change {
    STORE_CHANGE_UPDATED = 0,
    STORE_CHANGE_CREATED = 1,
    STORE_CHANGE_DELETED = 2,
};

/* One who is told of each change of keys; as struct store_waiter. All bytes
 * are borrowed for the call; before is empty where the key was missing, after
 * where it is. */
struct store_watcher {
    void (*changed)(struct store_watcher *watcher, enum store_change change,
                    struct bytes key, struct bytes before, struct bytes after);
    void *arg;
    struct store_links links;
};

/* A new, empty store with the limits of conf (copied), or NULL without
 * memory. */
struct store *store_create(const struct store_conf *conf);

/* Free all; waiters and watchers still there are forgotten without a call. */
void store_destroy(struct store *store);

const struct store_conf *store_conf_of(const struct store *store);

/*
 * Count bytes that others hold for this store's clients: false where that is
 * above the limit, and then they are not counted.
 */
bool store_charge(struct store *store, size_t bytes);
void store_release(struct store *store, size_t bytes);

/* What is counted now, in bytes. */
uint64_t store_memory(const struct store *store);

/*
 * Each of these that writes a key calls done of the waiters it completes, and
 * changed of the watchers, before it returns. All return 0 or a negative
 * errno: -ENOMEM, -ENOSPC above the limit of memory, -EDQUOT above that of
 * keys.
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
 * Count one arrival at a barrier: adds 1 as store_add does, but wakes nobody
 * before the count is world_size or more. Then all who wait for key are
 * released and complete_out is true; else waiter waits for key, in place of
 * what it waited for.
 */
int store_barrier(struct store *store, struct store_waiter *waiter,
                  struct bytes key, int64_t world_size, bool *complete_out);

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

/* Remove a key; true if there was one. Wakes nobody. Its queue stays. */
bool store_delete(struct store *store, struct bytes key);

/* Whether a key exists, or its queue holds something: what ends a wait. */
bool store_is_ready(const struct store *store, struct bytes key);

/* How many keys there are; queues do not count. */
size_t store_n_keys(const struct store *store);

/*
 * The keys, in no order: NULL asks for the first. Returns what to ask with for
 * the next, or NULL after the last. The store must not change meanwhile.
 */
const struct store_entry *store_next_key(const struct store *store,
                                         const struct store_entry *after,
                                         struct bytes *key_out);

/*
 * First in, first out; beside the plain key of the same name. A push releases
 * the one who has waited longest for key, if anybody does.
 */
int store_queue_push(struct store *store, struct bytes key, struct bytes value);
size_t store_queue_len(const struct store *store, struct bytes key);

/*
 * Take the first element: how many there were before, 0 for none. value_out is
 * borrowed until the next call of store_queue_drop, which must follow where
 * there was one.
 */
size_t store_queue_front(const struct store *store, struct bytes key,
                         struct bytes *value_out);
void store_queue_drop(struct store *store, struct bytes key);

/*
 * Wait for a key that is missing now. Call it once for each key; one that is
 * ready adds nothing. A key counts as soon as it is written once, also if it
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

/* Watch one key more, and forget all that were watched. */
int store_watch(struct store *store, struct store_watcher *watcher,
                struct bytes key);
void store_watch_cancel(struct store *store, struct store_watcher *watcher);

#endif
