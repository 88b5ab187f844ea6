/*
 * Texts with $names in them, as Python's string.Template fills them in where it
 * may not fail: $name and ${name} are replaced where the name is known and stay
 * as they are otherwise, $$ is a dollar sign.
 */
#ifndef FLAUNCH_LAUNCHER_TEMPLATE_H
#define FLAUNCH_LAUNCHER_TEMPLATE_H

#include <stddef.h>

struct template_value {
    const char *name;
    const char *text;
};

/*
 * Fill in pattern; text_out gets size - 1 bytes of it at most and a NUL, and
 * nothing where size is 0. Returns the length of the whole, as snprintf does.
 */
size_t template_fill(const char *pattern, const struct template_value *values,
                     size_t n_values, char *text_out, size_t size);

#endif
