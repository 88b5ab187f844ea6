#include "worker/detected.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void detected_explain(struct detected *detected, const char *format, ...)
{
    size_t len = strlen(detected->explanation);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(detected->explanation + len,
                    sizeof(detected->explanation) - len, format, args);
    va_end(args);
}
