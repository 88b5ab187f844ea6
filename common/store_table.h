/*
 * The store's keys in a hash table whose every step is short: it grows a few
 * slots at a time, and its hash cannot be flooded by who chooses keys.
 */
#ifndef FLAUNCH_COMMON_STORE_TABLE_H
#define FLAUNCH_COMMON_STORE_TABLE_H

#include "common/buf.h"

#include <stdbool.h>
#include <sys/queue.h>

struct store_link;
struct store_item;
TAILQ_HEAD(store_waits, store_link);
LIST_HEAD(store_watches, store_link);
STAILQ_HEAD(store_queue, store_item);

/* One key: it exists, or has a queue, or somebody waits for it or watches it.
 * What the members mean is store.c's affair. */
struct store_entry {
    struct store_entry *next; /* in the slot */
    uint64_t hash;
    struct store_waits waits; /* in order of arrival */
    struct store_watches watches;
    struct store_queue queue;
    size_t queue_len;
    uint8_t *value;
    size_t value_len;
    size_t value_cap;
    uint32_t key_len;
    bool exists;
    uint8_t key[];
};

struct store_slots {
    struct store_entry **at;
    size_t n; /* a power of two */
};

struct store_table {
    struct store_slots now;
    struct store_slots old; /* while growing; slots below moved are empty */
    size_t moved;
    size_t n_entries;
    uint64_t hash_key[2];
};

/* 0 or -ENOMEM. */
int store_table_init(struct store_table *table);

/* Free the slots; the entries are the caller's, see store_table_next. */
void store_table_destroy(struct store_table *table);

/* The entry of key, or NULL. */
struct store_entry *store_table_find(const struct store_table *table,
                                     struct bytes key);

/* A new entry, empty, for a key that has none; NULL without memory. */
struct store_entry *store_table_add(struct store_table *table,
                                    struct bytes key);

/* Take entry out and free it, but not what its members point to. */
void store_table_remove(struct store_table *table, struct store_entry *entry);

/*
 * The entry after another, in no order; NULL asks for the first, and comes
 * after the last. The table must not change in between, but for the removal of
 * entries that were given already.
 */
struct store_entry *store_table_next(const struct store_table *table,
                                     const struct store_entry *after);

#endif
