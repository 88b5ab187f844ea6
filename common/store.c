#include "common/store.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define FIRST_SLOTS 64     /* a power of two */
#define ENTRY_OVERHEAD 128 /* entry, slot and malloc's own, roughly */

/* One key: it exists, or somebody waits for it, or both. */
struct entry {
    struct entry *next; /* in the slot */
    uint64_t hash;
    bool exists;
    struct store_link *waiters;
    uint8_t *value;
    size_t value_len;
    size_t value_cap;
    size_t key_len;
    uint8_t key[];
};

/* One waiter at one key; on the list of each. */
struct store_link {
    struct store_waiter *waiter;
    struct entry *entry;
    struct store_link *entry_next;
    struct store_link **entry_at;
    struct store_link *waiter_next;
    struct store_link **waiter_at;
};

struct store {
    struct entry **slots;
    size_t n_slots;
    size_t n_entries; /* existing or waited for */
    size_t n_keys;    /* existing */
    uint64_t bytes;
    uint64_t limit_bytes;
    uint64_t seed;
};

/* FNV-1a over a random seed: whoever floods one slot must guess the seed. */
static uint64_t hash_of(const struct store *store, struct bytes key)
{
    uint64_t hash = store->seed;
    size_t i;

    for (i = 0; i < key.len; i++) {
        hash = (hash ^ key.data[i]) * 0x100000001b3U;
    }
    return hash ^ hash >> 29;
}

struct store *store_create(uint64_t limit_bytes)
{
    struct store *store = calloc(1, sizeof(*store));

    if (store == NULL) {
        return NULL;
    }
    store->slots = calloc(FIRST_SLOTS, sizeof(struct entry *));
    if (store->slots == NULL) {
        free(store);
        return NULL;
    }
    store->n_slots = FIRST_SLOTS;
    store->limit_bytes = limit_bytes != 0 ? limit_bytes : STORE_MEMORY_MAX;
    if (getrandom(&store->seed, sizeof(store->seed), GRND_NONBLOCK) < 0) {
        store->seed = 0xcbf29ce484222325U;
    }
    return store;
}

static struct entry **entry_find(const struct store *store, struct bytes key,
                                 uint64_t hash)
{
    struct entry **at = &store->slots[hash & (store->n_slots - 1)];

    while (*at != NULL &&
           ((*at)->hash != hash || (*at)->key_len != key.len ||
            (key.len > 0 && memcmp((*at)->key, key.data, key.len) != 0))) {
        at = &(*at)->next;
    }
    return at;
}

static void slots_grow(struct store *store)
{
    size_t n_slots = store->n_slots * 2;
    struct entry **slots = calloc(n_slots, sizeof(struct entry *));
    size_t i;

    if (slots == NULL) {
        return; /* longer chains until memory is back */
    }
    for (i = 0; i < store->n_slots; i++) {
        struct entry *entry = store->slots[i];

        while (entry != NULL) {
            struct entry *next = entry->next;
            struct entry **at = &slots[entry->hash & (n_slots - 1)];

            entry->next = *at;
            *at = entry;
            entry = next;
        }
    }
    free(store->slots);
    store->slots = slots;
    store->n_slots = n_slots;
}

/* The entry of key, made where it is missing; NULL without memory. */
static struct entry *entry_ensure(struct store *store, struct bytes key)
{
    uint64_t hash = hash_of(store, key);
    struct entry **at = entry_find(store, key, hash);
    struct entry *entry = *at;

    if (entry != NULL) {
        return entry;
    }
    if (store->bytes + key.len + ENTRY_OVERHEAD > store->limit_bytes) {
        return NULL;
    }
    entry = calloc(1, sizeof(*entry) + key.len);
    if (entry == NULL) {
        return NULL;
    }
    entry->hash = hash;
    entry->key_len = key.len;
    if (key.len > 0) {
        memcpy(entry->key, key.data, key.len);
    }
    *at = entry;
    store->bytes += key.len + ENTRY_OVERHEAD;
    if (++store->n_entries > store->n_slots) {
        slots_grow(store);
    }
    return entry;
}

/* Free an entry that neither exists nor is waited for. */
static void entry_drop(struct store *store, struct entry *entry)
{
    struct bytes key = { .data = entry->key, .len = entry->key_len };
    struct entry **at;

    if (entry->exists || entry->waiters != NULL) {
        return;
    }
    at = entry_find(store, key, entry->hash);
    *at = entry->next;
    store->bytes -= entry->key_len + ENTRY_OVERHEAD + entry->value_cap;
    store->n_entries--;
    free(entry->value);
    free(entry);
}

static void entry_destroy_all(struct entry *entry)
{
    while (entry != NULL) {
        struct entry *next = entry->next;

        while (entry->waiters != NULL) {
            struct store_link *link = entry->waiters;

            entry->waiters = link->entry_next;
            link->waiter->links = NULL;
            link->waiter->n_missing = 0;
            free(link);
        }
        free(entry->value);
        free(entry);
        entry = next;
    }
}

void store_destroy(struct store *store)
{
    size_t i;

    if (store == NULL) {
        return;
    }
    for (i = 0; i < store->n_slots; i++) {
        entry_destroy_all(store->slots[i]);
    }
    free(store->slots);
    free(store);
}

/* Take link off both lists and free it. */
static void link_destroy(struct store_link *link)
{
    *link->entry_at = link->entry_next;
    if (link->entry_next != NULL) {
        link->entry_next->entry_at = link->entry_at;
    }
    *link->waiter_at = link->waiter_next;
    if (link->waiter_next != NULL) {
        link->waiter_next->waiter_at = link->waiter_at;
    }
    free(link);
}

/* The key was written: release everybody who waits for it. */
static void entry_wake(struct entry *entry)
{
    while (entry->waiters != NULL) {
        struct store_link *link = entry->waiters;
        struct store_waiter *waiter = link->waiter;

        link_destroy(link);
        if (--waiter->n_missing == 0) {
            waiter->done(waiter);
        }
    }
}

/* Room for len value bytes; the old bytes stay. */
static int value_reserve(struct store *store, struct entry *entry, size_t len)
{
    size_t cap = entry->value_cap;
    uint8_t *value;

    if (len <= cap) {
        return 0;
    }
    /* A value that grows by APPEND doubles; one that is set fits. */
    cap = cap != 0 && len < cap * 2 ? cap * 2 : len;
    if (store->bytes - entry->value_cap + cap > store->limit_bytes) {
        return -ENOSPC;
    }
    value = realloc(entry->value, cap);
    if (value == NULL) {
        return -ENOMEM;
    }
    store->bytes += cap - entry->value_cap;
    entry->value = value;
    entry->value_cap = cap;
    return 0;
}

static void entry_exists_now(struct store *store, struct entry *entry)
{
    if (!entry->exists) {
        entry->exists = true;
        store->n_keys++;
    }
    entry_wake(entry);
}

static int entry_write(struct store *store, struct entry *entry, size_t at,
                       struct bytes value)
{
    int rc = value_reserve(store, entry, at + value.len);

    if (rc < 0) {
        entry_drop(store, entry);
        return rc;
    }
    if (value.len > 0) {
        memmove(entry->value + at, value.data, value.len);
    }
    entry->value_len = at + value.len;
    entry_exists_now(store, entry);
    return 0;
}

/* Why entry_ensure gave NULL. */
static int entry_refused(const struct store *store, struct bytes key)
{
    return store->bytes + key.len + ENTRY_OVERHEAD > store->limit_bytes
               ? -ENOSPC
               : -ENOMEM;
}

int store_set(struct store *store, struct bytes key, struct bytes value)
{
    struct entry *entry = entry_ensure(store, key);

    if (entry == NULL) {
        return entry_refused(store, key);
    }
    return entry_write(store, entry, 0, value);
}

int store_append(struct store *store, struct bytes key, struct bytes suffix)
{
    struct entry *entry = entry_ensure(store, key);

    if (entry == NULL) {
        return entry_refused(store, key);
    }
    return entry_write(store, entry, entry->exists ? entry->value_len : 0,
                       suffix);
}

/* As strtoll base 10 over bytes with a length; see store_add. */
static int counter_read(struct bytes text, int64_t *value_out)
{
    uint64_t magnitude = 0;
    uint64_t limit = INT64_MAX;
    bool negative = false;
    size_t first;
    size_t i = 0;

    while (i < text.len && strchr(" \t\n\v\f\r", text.data[i]) != NULL &&
           text.data[i] != '\0') {
        i++;
    }
    if (i < text.len && (text.data[i] == '-' || text.data[i] == '+')) {
        negative = text.data[i++] == '-';
    }
    if (negative) {
        limit++;
    }
    for (first = i; i < text.len && text.data[i] >= '0' && text.data[i] <= '9';
         i++) {
        uint64_t digit = (uint64_t)(text.data[i] - '0');

        if (magnitude > (limit - digit) / 10) {
            return -ERANGE;
        }
        magnitude = magnitude * 10 + digit;
    }
    if (i == first) {
        return -EINVAL;
    }
    *value_out = (int64_t)(negative ? 0 - magnitude : magnitude);
    return 0;
}

int store_add(struct store *store, struct bytes key, int64_t delta,
              int64_t *value_out)
{
    struct bytes old;
    int64_t value = 0;
    char text[24];
    int rc;
    int n;

    if (store_get(store, key, &old)) {
        rc = counter_read(old, &value);
        if (rc < 0) {
            return rc;
        }
    }
    value = (int64_t)((uint64_t)value + (uint64_t)delta);
    n = snprintf(text, sizeof(text), "%" PRId64, value);
    rc = store_set(
        store, key,
        (struct bytes){ .data = (const uint8_t *)text, .len = (size_t)n });
    if (rc < 0) {
        return rc;
    }
    *value_out = value;
    return 0;
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
    const struct entry *entry = *entry_find(store, key, hash_of(store, key));

    if (entry == NULL || !entry->exists) {
        return false;
    }
    *value_out =
        (struct bytes){ .data = entry->value, .len = entry->value_len };
    return true;
}

bool store_delete(struct store *store, struct bytes key)
{
    struct entry *entry = *entry_find(store, key, hash_of(store, key));

    if (entry == NULL || !entry->exists) {
        return false;
    }
    entry->exists = false;
    entry->value_len = 0;
    store->n_keys--;
    entry_drop(store, entry);
    return true;
}

size_t store_n_keys(const struct store *store)
{
    return store->n_keys;
}

int store_wait(struct store *store, struct store_waiter *waiter,
               struct bytes key)
{
    struct entry *entry = entry_ensure(store, key);
    struct store_link *link;

    if (entry == NULL) {
        return entry_refused(store, key);
    }
    if (entry->exists) {
        return 0;
    }
    link = calloc(1, sizeof(*link));
    if (link == NULL) {
        entry_drop(store, entry);
        return -ENOMEM;
    }
    *link = (struct store_link){ .waiter = waiter,
                                 .entry = entry,
                                 .entry_next = entry->waiters,
                                 .entry_at = &entry->waiters,
                                 .waiter_next = waiter->links,
                                 .waiter_at = &waiter->links };
    if (link->entry_next != NULL) {
        link->entry_next->entry_at = &link->entry_next;
    }
    if (link->waiter_next != NULL) {
        link->waiter_next->waiter_at = &link->waiter_next;
    }
    entry->waiters = link;
    waiter->links = link;
    waiter->n_missing++;
    return 0;
}

bool store_waiter_key(const struct store_waiter *waiter, size_t number,
                      struct bytes *key_out)
{
    const struct store_link *link = waiter->links;

    while (link != NULL && number-- > 0) {
        link = link->waiter_next;
    }
    if (link == NULL) {
        return false;
    }
    *key_out =
        (struct bytes){ .data = link->entry->key, .len = link->entry->key_len };
    return true;
}

void store_wait_cancel(struct store *store, struct store_waiter *waiter)
{
    while (waiter->links != NULL) {
        struct store_link *link = waiter->links;
        struct entry *entry = link->entry;

        link_destroy(link);
        assert(waiter->links != link);
        entry_drop(store, entry);
    }
    waiter->n_missing = 0;
}
