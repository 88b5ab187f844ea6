#include "common/hostlist.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits of a number in a group; a node has no longer one. */
#define DIGITS_MAX 18

struct walk {
    hostlist_fn *each;
    void *arg;
    size_t n_names;
    char name[HOSTLIST_NAME_MAX]; /* as far as it is built */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Read digits up to end: 0 or -EINVAL. */
static int read_number(const char **at, const char *end, uint64_t *value_out,
                       size_t *width_out)
{
    const char *start = *at;
    uint64_t value = 0;

    while (*at < end && is_digit(**at)) {
        value = value * 10 + (uint64_t)(**at - '0');
        (*at)++;
        if (*at - start > DIGITS_MAX) {
            return -EINVAL;
        }
    }
    *value_out = value;
    *width_out = (size_t)(*at - start);
    return *width_out > 0 ? 0 : -EINVAL;
}

static int entry_walk(struct walk *walk, const char *at, const char *end,
                      size_t len);

/* One number or range of a group, and what follows the group for each. */
static int range_walk(struct walk *walk, const char **at, const char *close,
                      const char *end, size_t len)
{
    uint64_t low;
    uint64_t high;
    size_t width;
    size_t ignored;
    int rc = read_number(at, close, &low, &width);

    high = low;
    if (rc == 0 && *at < close && **at == '-') {
        (*at)++;
        rc = read_number(at, close, &high, &ignored);
    }
    if (rc < 0 || high < low || (*at < close && **at != ',')) {
        return -EINVAL;
    }
    if (high - low >= HOSTLIST_NODES_MAX) {
        return -E2BIG;
    }
    for (; low <= high && rc == 0; low++) {
        int n = snprintf(walk->name + len, sizeof(walk->name) - len,
                         "%0*" PRIu64, (int)width, low);

        if (n < 0 || (size_t)n >= sizeof(walk->name) - len) {
            return -E2BIG;
        }
        rc = entry_walk(walk, close + 1, end, len + (size_t)n);
    }
    return rc;
}

/* What is left of an entry; len characters of the name are there. */
static int entry_walk(struct walk *walk, const char *at, const char *end,
                      size_t len)
{
    const char *close;
    int rc = 0;

    while (at < end && *at != '[') {
        if (*at == ']' || len + 1 >= sizeof(walk->name)) {
            return *at == ']' ? -EINVAL : -E2BIG;
        }
        walk->name[len++] = *at++;
    }
    if (at == end) {
        walk->name[len] = '\0';
        if (len == 0) {
            return -EINVAL;
        }
        return ++walk->n_names > HOSTLIST_NODES_MAX
                   ? -E2BIG
                   : walk->each(walk->name, walk->arg);
    }
    at++;
    close = memchr(at, ']', (size_t)(end - at));
    if (close == NULL || at == close) {
        return -EINVAL;
    }
    /* As Slurm: nothing but further groups' text may follow, so "a[1-2]x" is
     * refused and "a[1-2]-b[3]" is not. */
    if (close + 1 < end &&
        memchr(close + 1, '[', (size_t)(end - close - 1)) == NULL) {
        return -EINVAL;
    }
    do {
        rc = range_walk(walk, &at, close, end, len);
    } while (rc == 0 && at++ < close);
    return rc;
}

int hostlist_walk(const char *text, hostlist_fn *each, void *arg)
{
    struct walk walk = { .each = each, .arg = arg };
    int rc = 0;

    for (;;) {
        const char *end = text;
        int depth = 0;

        while (*end != '\0' && (*end != ',' || depth > 0)) {
            depth += (*end == '[') - (*end == ']');
            if (depth < 0 || depth > 1) {
                return -EINVAL;
            }
            end++;
        }
        rc = depth != 0 ? -EINVAL : entry_walk(&walk, text, end, 0);
        if (rc != 0 || *end == '\0') {
            return rc;
        }
        text = end + 1;
    }
}

static int keep_first(const char *name, void *arg)
{
    (void)snprintf(arg, HOSTLIST_NAME_MAX, "%s", name);
    return 1;
}

int hostlist_first(const char *text, char name_out[HOSTLIST_NAME_MAX])
{
    int rc = hostlist_walk(text, keep_first, name_out);

    return rc < 0 ? rc : 0;
}

int hostlist_count_at(const char *text, int64_t index, int64_t *count_out)
{
    const char *end = text + strlen(text);

    for (;;) {
        uint64_t count;
        uint64_t times = 1;
        size_t width;

        if (read_number(&text, end, &count, &width) < 0) {
            return -EINVAL;
        }
        if (strncmp(text, "(x", 2) == 0) {
            text += 2;
            if (read_number(&text, end, &times, &width) < 0 || *text++ != ')') {
                return -EINVAL;
            }
        }
        if (*text != '\0' && *text != ',') {
            return -EINVAL;
        }
        if ((uint64_t)index < times) {
            *count_out = (int64_t)count;
            return 0;
        }
        index -= (int64_t)times;
        if (*text++ == '\0') {
            return -ERANGE;
        }
    }
}
