#include "launcher/log_prefix.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct text {
    char *data;
    size_t len;
    size_t size;
};

static void text_add(struct text *text, const char *data, size_t len)
{
    size_t room = text->size - 1 - text->len;

    len = len < room ? len : room;
    memcpy(text->data + text->len, data, len);
    text->len += len;
}

static bool is_name(const char *name, size_t len, const char *known)
{
    return len == strlen(known) && memcmp(name, known, len) == 0;
}

/* Add the value of a name; false where there is none. */
static bool add_value(struct text *text, const char *name, size_t len,
                      const struct log_prefix_values *values)
{
    char number[16] = "";
    const char *value = number;

    if (is_name(name, len, "role_name")) {
        value = values->role_name;
    } else if (is_name(name, len, "host")) {
        value = values->host;
    } else if (is_name(name, len, "rank")) {
        (void)snprintf(number, sizeof(number), "%u", values->rank);
    } else if (is_name(name, len, "local_rank")) {
        (void)snprintf(number, sizeof(number), "%u", values->local_rank);
    } else {
        return false;
    }
    text_add(text, value, strlen(value));
    return true;
}

static size_t name_len(const char *at)
{
    size_t len = 0;

    while (isalnum((unsigned char)at[len]) || at[len] == '_') {
        len++;
    }
    return len;
}

size_t log_prefix_fill(const char *pattern,
                       const struct log_prefix_values *values, char *text_out,
                       size_t size)
{
    struct text text = { .data = text_out, .size = size };
    const char *at = pattern;

    while (*at != '\0') {
        bool braces = at[0] == '$' && at[1] == '{';
        const char *name = at + 1 + braces;
        size_t len = at[0] == '$' ? name_len(name) : 0;

        if (at[0] == '$' && at[1] == '$') {
            text_add(&text, "$", 1);
            at += 2;
        } else if (len > 0 && (!braces || name[len] == '}') &&
                   add_value(&text, name, len, values)) {
            at = name + len + braces;
        } else {
            text_add(&text, at, 1);
            at++;
        }
    }
    text_out[text.len] = '\0';
    return text.len;
}

void log_prefix_stamp(char *text_out, size_t size)
{
    struct timespec now;
    struct tm parts;
    size_t len;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)localtime_r(&now.tv_sec, &parts);
    len = strftime(text_out, size, "%Y-%m-%d %H:%M:%S", &parts);
    (void)snprintf(text_out + len, size - len, ".%03ld ",
                   now.tv_nsec / 1000000);
}
