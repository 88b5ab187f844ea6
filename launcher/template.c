#include "launcher/template.h"

#include <stdbool.h>
#include <string.h>

struct text {
    char *data;
    size_t len; /* of the whole, also where it is cut */
    size_t size;
};

static void text_add(struct text *text, const char *data, size_t len)
{
    if (text->len + 1 < text->size) {
        size_t room = text->size - 1 - text->len;

        memcpy(text->data + text->len, data, len < room ? len : room);
    }
    text->len += len;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t name_len(const char *at)
{
    size_t len = 0;

    while (is_letter(at[len]) ||
           (len > 0 && at[len] >= '0' && at[len] <= '9')) {
        len++;
    }
    return len;
}

static const char *find(const struct template_value *values, size_t n_values,
                        const char *name, size_t len)
{
    size_t i;

    for (i = 0; i < n_values; i++) {
        if (strlen(values[i].name) == len &&
            memcmp(values[i].name, name, len) == 0) {
            return values[i].text;
        }
    }
    return NULL;
}

size_t template_fill(const char *pattern, const struct template_value *values,
                     size_t n_values, char *text_out, size_t size)
{
    struct text text = { .data = text_out, .size = size };
    const char *at = pattern;

    while (*at != '\0') {
        bool braces = at[0] == '$' && at[1] == '{';
        const char *name = at + 1 + braces;
        size_t len = at[0] == '$' ? name_len(name) : 0;
        const char *value = len > 0 && (!braces || name[len] == '}')
                                ? find(values, n_values, name, len)
                                : NULL;

        if (value != NULL) {
            text_add(&text, value, strlen(value));
            at = name + len + braces;
        } else {
            text_add(&text, at, 1);
            at += at[0] == '$' && at[1] == '$' ? 2 : 1;
        }
    }
    if (size > 0) {
        text_out[text.len < size ? text.len : size - 1] = '\0';
    }
    return text.len;
}
