#include "common/store_table.h"

#include "common/clock.h"
#include "common/siphash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define FIRST_SLOTS 64
/* Old slots emptied by each new key; one each would do to have the old ones
 * gone before the new ones are full. */
#define MOVES 4

int store_table_init(struct store_table *table)
{
    *table = (struct store_table){ 0 };
    table->now.at = calloc(FIRST_SLOTS, sizeof(struct store_entry *));
    if (table->now.at == NULL) {
        return -ENOMEM;
    }
    table->now.n = FIRST_SLOTS;
    if (getrandom(table->hash_key, sizeof(table->hash_key), GRND_NONBLOCK) <
        0) {
        /* Early at boot; what a stranger does not know either. */
        table->hash_key[0] = clock_ns();
        table->hash_key[1] = (uint64_t)(uintptr_t)table->now.at;
    }
    return 0;
}

void store_table_destroy(struct store_table *table)
{
    free(table->now.at);
    free(table->old.at);
}

/* Chains are numbered: the old slots first, then those of now. */
static size_t chain_of(const struct store_table *table, uint64_t hash)
{
    size_t old = hash & (table->old.n - 1);

    if (table->old.n > 0 && old >= table->moved) {
        return old;
    }
    return table->old.n + (hash & (table->now.n - 1));
}

static struct store_entry **slot(const struct store_table *table, size_t chain)
{
    return chain < table->old.n ? &table->old.at[chain]
                                : &table->now.at[chain - table->old.n];
}

static struct store_entry **slot_of(const struct store_table *table,
                                    uint64_t hash)
{
    return slot(table, chain_of(table, hash));
}

static uint64_t hash_of(const struct store_table *table, struct bytes key)
{
    return siphash13(table->hash_key, key.data, key.len);
}

struct store_entry *store_table_find(const struct store_table *table,
                                     struct bytes key)
{
    uint64_t hash = hash_of(table, key);
    struct store_entry *entry = *slot_of(table, hash);

    while (entry != NULL &&
           (entry->hash != hash || entry->key_len != key.len ||
            (key.len > 0 && memcmp(entry->key, key.data, key.len) != 0))) {
        entry = entry->next;
    }
    return entry;
}

static void grow_begin(struct store_table *table)
{
    struct store_slots bigger = { .n = table->now.n * 2 };

    bigger.at = calloc(bigger.n, sizeof(struct store_entry *));
    if (bigger.at == NULL) {
        return; /* longer chains until memory is back */
    }
    table->old = table->now;
    table->now = bigger;
    table->moved = 0;
}

static void grow_on(struct store_table *table)
{
    int i;

    for (i = 0; i < MOVES && table->moved < table->old.n; i++) {
        struct store_entry *entry = table->old.at[table->moved];

        table->old.at[table->moved++] = NULL;
        while (entry != NULL) {
            struct store_entry *next = entry->next;
            struct store_entry **at =
                &table->now.at[entry->hash & (table->now.n - 1)];

            entry->next = *at;
            *at = entry;
            entry = next;
        }
    }
    if (table->moved == table->old.n) {
        free(table->old.at);
        table->old = (struct store_slots){ 0 };
    }
}

struct store_entry *store_table_add(struct store_table *table, struct bytes key)
{
    struct store_entry *entry = calloc(1, sizeof(*entry) + key.len);
    struct store_entry **at;

    if (entry == NULL) {
        return NULL;
    }
    if (table->old.n > 0) {
        grow_on(table);
    } else if (table->n_entries >= table->now.n) {
        grow_begin(table);
    }
    entry->hash = hash_of(table, key);
    entry->key_len = (uint32_t)key.len;
    if (key.len > 0) {
        memcpy(entry->key, key.data, key.len);
    }
    TAILQ_INIT(&entry->waits);
    STAILQ_INIT(&entry->queue);
    at = slot_of(table, entry->hash);
    entry->next = *at;
    *at = entry;
    table->n_entries++;
    return entry;
}

void store_table_remove(struct store_table *table, struct store_entry *entry)
{
    struct store_entry **at = slot_of(table, entry->hash);

    while (*at != entry) {
        at = &(*at)->next;
    }
    *at = entry->next;
    free(entry);
    table->n_entries--;
}

struct store_entry *store_table_next(const struct store_table *table,
                                     const struct store_entry *after)
{
    size_t chain = 0;

    if (after != NULL) {
        if (after->next != NULL) {
            return after->next;
        }
        chain = chain_of(table, after->hash) + 1;
    }
    for (; chain < table->old.n + table->now.n; chain++) {
        if (*slot(table, chain) != NULL) {
            return *slot(table, chain);
        }
    }
    return NULL;
}
