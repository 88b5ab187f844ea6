#include "common/environ.h"

#include "common/parse.h"

#include <stdio.h>

const char *environ_get(const struct environ_view *view, const char *name)
{
    return view->get(name, view->arg);
}

bool environ_is_set(const struct environ_view *view, const char *name)
{
    return environ_get(view, name) != NULL;
}

enum environ_result environ_missing(char *why, size_t why_size,
                                    const char *name)
{
    (void)snprintf(why, why_size, "%s is not set", name);
    return ENVIRON_MISSING;
}

enum environ_result environ_int(const struct environ_view *view,
                                const char *name, int64_t min, int64_t max,
                                int *value_out, char *why, size_t why_size)
{
    const char *text = environ_get(view, name);
    int64_t value;

    if (text == NULL) {
        return environ_missing(why, why_size, name);
    }
    if (parse_int(text, min, max, &value) < 0) {
        (void)snprintf(why, why_size, "%s=%.64s is no number from %lld to %lld",
                       name, text, (long long)min, (long long)max);
        return ENVIRON_BAD;
    }
    *value_out = (int)value;
    return ENVIRON_OK;
}
