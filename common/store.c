#include "common/store.h"

#include "common/store_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct store *store_create(const struct store_conf *conf)
{
    struct store *store = calloc(1, sizeof(*store));

    if (store == NULL) {
        return NULL;
    }
    store->conf = *conf;
    if (store_table_init(&store->table) < 0) {
        free(store);
        return NULL;
    }
    return store;
}

static void queue_destroy(struct store_entry *entry)
{
    struct store_item *item;

    while ((item = STAILQ_FIRST(&entry->queue)) != NULL) {
        STAILQ_REMOVE_HEAD(&entry->queue, next);
        free(item);
    }
}

void store_destroy(struct store *store)
{
    struct store_entry *entry;

    if (store == NULL) {
        return;
    }
    entry = store_table_next(&store->table, NULL);
    while (entry != NULL) {
        struct store_entry *next = store_table_next(&store->table, entry);

        store_entry_forget(entry);
        queue_destroy(entry);
        free(entry->value);
        store_table_remove(&store->table, entry);
        entry = next;
    }
    store_table_destroy(&store->table);
    free(store);
}

const struct store_conf *store_conf_of(const struct store *store)
{
    return &store->conf;
}

bool store_charge(struct store *store, size_t bytes)
{
    if (bytes > store->conf.max_memory ||
        store->used > store->conf.max_memory - bytes) {
        return false;
    }
    store->used += bytes;
    return true;
}

void store_release(struct store *store, size_t bytes)
{
    store->used -= bytes;
}

uint64_t store_memory(const struct store *store)
{
    return store->used;
}

/* --- entries ------------------------------------------------------------ */

int store_entry_ensure(struct store *store, struct bytes key,
                       struct store_entry **entry_out)
{
    struct store_entry *entry = store_table_find(&store->table, key);

    if (entry == NULL) {
        if (!store_charge(store, key.len + ENTRY_COST)) {
            return -ENOSPC;
        }
        entry = store_table_add(&store->table, key);
        if (entry == NULL) {
            store_release(store, key.len + ENTRY_COST);
            return -ENOMEM;
        }
    }
    *entry_out = entry;
    return 0;
}

void store_entry_drop(struct store *store, struct store_entry *entry)
{
    if (entry->exists || entry->queue_len > 0 || !TAILQ_EMPTY(&entry->waits) ||
        !LIST_EMPTY(&entry->watches)) {
        return;
    }
    store_release(store, entry->key_len + ENTRY_COST + entry->value_cap);
    free(entry->value);
    store_table_remove(&store->table, entry);
}

/* Room for len value bytes; the old bytes stay. */
static int value_reserve(struct store *store, struct store_entry *entry,
                         size_t len)
{
    size_t cap = entry->value_cap;
    uint8_t *value;

    if (len <= cap) {
        return 0;
    }
    /* A value that grows by APPEND doubles; one that is set fits. */
    cap = cap != 0 && len < cap * 2 ? cap * 2 : len;
    if (!store_charge(store, cap - entry->value_cap)) {
        return -ENOSPC;
    }
    value = realloc(entry->value, cap);
    if (value == NULL) {
        store_release(store, cap - entry->value_cap);
        return -ENOMEM;
    }
    entry->value = value;
    entry->value_cap = cap;
    return 0;
}

static struct bytes value_of(const struct store_entry *entry)
{
    return (struct bytes){ .data = entry->value, .len = entry->value_len };
}

/* Replace the value from offset at on; the key exists then. */
static int value_put(struct store *store, struct store_entry *entry, size_t at,
                     struct bytes value)
{
    int rc = value_reserve(store, entry, at + value.len);

    if (rc < 0) {
        return rc;
    }
    if (value.len > 0) {
        memmove(entry->value + at, value.data, value.len);
    }
    entry->value_len = at + value.len;
    store->n_keys += !entry->exists;
    entry->exists = true;
    return 0;
}

/* The same where watchers are to be told what was there before. */
static int value_put_watched(struct store *store, struct store_entry *entry,
                             size_t at, struct bytes value)
{
    enum store_change change =
        entry->exists ? STORE_CHANGE_UPDATED : STORE_CHANGE_CREATED;
    struct buf before = { 0 };
    int rc = buf_append(&before, entry->value, entry->value_len);

    if (rc == 0) {
        rc = value_put(store, entry, at, value);
    }
    if (rc == 0) {
        store_entry_changed(
            entry, change,
            (struct bytes){ .data = before.data, .len = before.len },
            value_of(entry));
    }
    buf_destroy(&before);
    return rc;
}

int store_entry_write(struct store *store, struct store_entry *entry, size_t at,
                      struct bytes value)
{
    int rc;

    if (!entry->exists && store->n_keys >= store->conf.max_keys) {
        rc = -EDQUOT;
    } else if (LIST_EMPTY(&entry->watches)) {
        rc = value_put(store, entry, at, value);
    } else {
        rc = value_put_watched(store, entry, at, value);
    }
    if (rc < 0) {
        store_entry_drop(store, entry);
    }
    return rc;
}

/* --- keys and values ---------------------------------------------------- */

int store_set(struct store *store, struct bytes key, struct bytes value)
{
    struct store_entry *entry;
    int rc = store_entry_ensure(store, key, &entry);

    if (rc == 0) {
        rc = store_entry_write(store, entry, 0, value);
    }
    if (rc == 0) {
        store_entry_wake(store, entry);
    }
    return rc;
}

int store_append(struct store *store, struct bytes key, struct bytes suffix)
{
    struct store_entry *entry;
    int rc = store_entry_ensure(store, key, &entry);

    if (rc == 0) {
        rc = store_entry_write(store, entry, entry->value_len, suffix);
    }
    if (rc == 0) {
        store_entry_wake(store, entry);
    }
    return rc;
}

int store_compare_set(struct store *store, struct bytes key,
                      struct bytes expected, struct bytes desired,
                      struct bytes *result_out)
{
    struct bytes old;
    int rc;

    if (store_get(store, key, &old)) {
        if (old.len != expected.len ||
            (old.len > 0 && memcmp(old.data, expected.data, old.len) != 0)) {
            *result_out = old;
            return 0;
        }
    } else if (expected.len != 0) {
        *result_out = expected;
        return 0;
    }
    rc = store_set(store, key, desired);
    if (rc == 0) {
        *result_out = desired;
    }
    return rc;
}

bool store_get(const struct store *store, struct bytes key,
               struct bytes *value_out)
{
    const struct store_entry *entry = store_table_find(&store->table, key);

    if (entry == NULL || !entry->exists) {
        return false;
    }
    *value_out = value_of(entry);
    return true;
}

bool store_delete(struct store *store, struct bytes key)
{
    struct store_entry *entry = store_table_find(&store->table, key);

    if (entry == NULL || !entry->exists) {
        return false;
    }
    store_entry_changed(entry, STORE_CHANGE_DELETED, value_of(entry),
                        (struct bytes){ 0 });
    entry->exists = false;
    entry->value_len = 0;
    store->n_keys--;
    store_entry_drop(store, entry);
    return true;
}

static bool is_ready(const struct store_entry *entry)
{
    return entry != NULL && (entry->exists || entry->queue_len > 0);
}

bool store_is_ready(const struct store *store, struct bytes key)
{
    return is_ready(store_table_find(&store->table, key));
}

size_t store_n_keys(const struct store *store)
{
    return store->n_keys;
}

const struct store_entry *store_next_key(const struct store *store,
                                         const struct store_entry *after,
                                         struct bytes *key_out)
{
    const struct store_entry *entry = store_table_next(&store->table, after);

    while (entry != NULL && !entry->exists) {
        entry = store_table_next(&store->table, entry);
    }
    if (entry != NULL) {
        *key_out = store_entry_key(entry);
    }
    return entry;
}

int store_wait(struct store *store, struct store_waiter *waiter,
               struct bytes key)
{
    struct store_entry *entry;
    int rc = store_entry_ensure(store, key, &entry);

    return rc < 0 || is_ready(entry) ? rc
                                     : store_entry_wait(store, entry, waiter);
}

/* --- queues ------------------------------------------------------------- */

int store_queue_push(struct store *store, struct bytes key, struct bytes value)
{
    struct store_entry *entry;
    struct store_item *item;
    int rc = store_entry_ensure(store, key, &entry);

    if (rc < 0) {
        return rc;
    }
    if (!store_charge(store, ITEM_COST + value.len)) {
        store_entry_drop(store, entry);
        return -ENOSPC;
    }
    item = malloc(sizeof(*item) + value.len);
    if (item == NULL) {
        store_release(store, ITEM_COST + value.len);
        store_entry_drop(store, entry);
        return -ENOMEM;
    }
    item->len = value.len;
    if (value.len > 0) {
        memcpy(item->value, value.data, value.len);
    }
    STAILQ_INSERT_TAIL(&entry->queue, item, next);
    entry->queue_len++;
    store_entry_wake_first(store, entry);
    return 0;
}

size_t store_queue_len(const struct store *store, struct bytes key)
{
    const struct store_entry *entry = store_table_find(&store->table, key);

    return entry != NULL ? entry->queue_len : 0;
}

size_t store_queue_front(const struct store *store, struct bytes key,
                         struct bytes *value_out)
{
    const struct store_entry *entry = store_table_find(&store->table, key);
    const struct store_item *item;

    if (entry == NULL || entry->queue_len == 0) {
        return 0;
    }
    item = STAILQ_FIRST(&entry->queue);
    *value_out = (struct bytes){ .data = item->value, .len = item->len };
    return entry->queue_len;
}

void store_queue_drop(struct store *store, struct bytes key)
{
    struct store_entry *entry = store_table_find(&store->table, key);
    struct store_item *item = STAILQ_FIRST(&entry->queue);

    STAILQ_REMOVE_HEAD(&entry->queue, next);
    store_release(store, ITEM_COST + item->len);
    free(item);
    entry->queue_len--;
    store_entry_drop(store, entry);
}
