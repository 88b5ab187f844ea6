/*
 * Values that are decimal numbers: counters and barriers.
 */
#include "common/store_impl.h"

#include <errno.h>

static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* As strtoll base 10 over bytes with a length; see store_add. */
static int counter_read(struct bytes text, int64_t *value_out)
{
    uint64_t magnitude = 0;
    uint64_t limit = INT64_MAX;
    bool negative = false;
    size_t first;
    size_t i = 0;

    while (i < text.len && is_blank(text.data[i])) {
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

#define COUNTER_TEXT 20 /* "-9223372036854775808" */

/* A number as decimal text, at the end of room; printf takes longer than all
 * the rest of an ADD. */
static struct bytes counter_text(int64_t value, uint8_t room[COUNTER_TEXT])
{
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    size_t at = COUNTER_TEXT;

    do {
        room[--at] = (uint8_t)('0' + magnitude % 10);
        magnitude /= 10;
    } while (magnitude > 0);
    if (value < 0) {
        room[--at] = '-';
    }
    return (struct bytes){ .data = room + at, .len = COUNTER_TEXT - at };
}

/* Add without waking anybody. */
static int counter_add(struct store *store, struct bytes key, int64_t delta,
                       struct store_entry **entry_out, int64_t *value_out)
{
    struct store_entry *entry;
    uint8_t room[COUNTER_TEXT];
    int64_t value = 0;
    int rc = store_entry_ensure(store, key, &entry);

    if (rc == 0 && entry->exists) {
        rc = counter_read(
            (struct bytes){ .data = entry->value, .len = entry->value_len },
            &value);
    }
    if (rc < 0) {
        return rc;
    }
    value = (int64_t)((uint64_t)value + (uint64_t)delta);
    rc = store_entry_write(store, entry, 0, counter_text(value, room));
    if (rc < 0) {
        return rc;
    }
    *entry_out = entry;
    *value_out = value;
    return 0;
}

int store_add(struct store *store, struct bytes key, int64_t delta,
              int64_t *value_out)
{
    struct store_entry *entry;
    int rc = counter_add(store, key, delta, &entry, value_out);

    if (rc == 0) {
        store_entry_wake(store, entry);
    }
    return rc;
}

int store_barrier(struct store *store, struct store_waiter *waiter,
                  struct bytes key, int64_t world_size, bool *complete_out)
{
    struct store_entry *entry;
    int64_t count;
    int rc = counter_add(store, key, 1, &entry, &count);

    if (rc < 0) {
        return rc;
    }
    *complete_out = count >= world_size;
    if (*complete_out) {
        store_entry_wake(store, entry);
        return 0;
    }
    store_wait_cancel(store, waiter);
    return store_entry_wait(store, entry, waiter);
}
