/*
 * What the files of the store share; for store*.c only.
 */
#ifndef FLAUNCH_COMMON_STORE_IMPL_H
#define FLAUNCH_COMMON_STORE_IMPL_H

#include "common/store.h"
#include "common/store_table.h"

/* What an entry, a link and an element cost beside their bytes: themselves,
 * the slot and malloc's own, rounded up. */
#define ENTRY_COST 128
#define LINK_COST 72
#define ITEM_COST 48

struct store {
    struct store_conf conf;
    struct store_table table;
    size_t n_keys; /* that exist */
    uint64_t used; /* bytes */
};

/* One waiter at one key, or one watcher; on a list of each. */
struct store_link {
    struct store_entry *entry;
    struct store_waiter *waiter;   /* NULL: of a watcher */
    struct store_watcher *watcher; /* NULL: of a waiter */
    union {
        TAILQ_ENTRY(store_link) waits;
        LIST_ENTRY(store_link) watches;
    } at_entry;
    LIST_ENTRY(store_link) at_owner;
};

struct store_item {
    STAILQ_ENTRY(store_item) next;
    size_t len;
    uint8_t value[];
};

static inline struct bytes store_entry_key(const struct store_entry *entry)
{
    return (struct bytes){ .data = entry->key, .len = entry->key_len };
}

/* The entry of key, made where it is missing: 0, -ENOSPC or -ENOMEM. */
int store_entry_ensure(struct store *store, struct bytes key,
                       struct store_entry **entry_out);

/* Free an entry that neither exists nor is of interest to anybody. */
void store_entry_drop(struct store *store, struct store_entry *entry);

/*
 * Replace the value from offset at on, and create the key where it is missing;
 * tells watchers, wakes nobody. On an error the entry is dropped if it was
 * new.
 */
int store_entry_write(struct store *store, struct store_entry *entry, size_t at,
                      struct bytes value);

/* Release all who wait for the entry's key, or the first of them. */
void store_entry_wake(struct store *store, struct store_entry *entry);
void store_entry_wake_first(struct store *store, struct store_entry *entry);

/* Tell the watchers of a change. */
void store_entry_changed(const struct store_entry *entry,
                         enum store_change change, struct bytes before,
                         struct bytes after);

/* Free the links of an entry, which is to be freed itself. */
void store_entry_forget(struct store_entry *entry);

/* Have waiter wait for the entry, ready or not: 0, -ENOSPC or -ENOMEM. */
int store_entry_wait(struct store *store, struct store_entry *entry,
                     struct store_waiter *waiter);

#endif
