#include "worker/fail.h"

#include <stdarg.h>
#include <stdio.h>

int fail_set(struct flaunch_error *error, enum flaunch_domain domain, int code,
             const char *format, ...)
{
    va_list args;

    if (error == NULL) {
        return code;
    }
    error->domain = domain;
    error->code = code;
    va_start(args, format);
    (void)vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    return code;
}

int fail_store(struct flaunch_error *error, const struct err *err)
{
    return fail_set(error, FLAUNCH_STORE, err->code, "%s", err->text);
}
