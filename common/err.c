#include "common/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Both strerror_r exist; this picks the text of either. */
static const char *system_words(int number, char *buffer, size_t size)
{
#ifdef __GLIBC__
    return strerror_r(number, buffer, size);
#else
    return strerror_r(number, buffer, size) == 0 ? buffer : "unknown error";
#endif
}

int err_set(struct err *err, int code, const char *format, ...)
{
    va_list args;

    if (err == NULL) {
        return code;
    }
    err->code = code;
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    return code;
}

int err_sys(struct err *err, int code, const char *format, ...)
{
    char words[128];
    va_list args;
    size_t len;

    if (err == NULL) {
        return code;
    }
    err->code = code;
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    len = strlen(err->text);
    (void)snprintf(err->text + len, sizeof(err->text) - len, ": %s",
                   system_words(-code, words, sizeof(words)));
    return code;
}
