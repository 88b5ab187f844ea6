#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2000

static enum log_level log_level_shown = LOG_INFO;

void log_set_level(enum log_level level)
{
    log_level_shown = level;
}

void log_line(enum log_level level, const char *format, ...)
{
    char line[LINE_MAX_BYTES + 2] = "flaunch: ";
    const size_t start = sizeof("flaunch: ") - 1;
    int saved_errno = errno;
    va_list args;
    size_t len;
    int n;

    if (level > log_level_shown) {
        return;
    }
    va_start(args, format);
    n = vsnprintf(line + start, LINE_MAX_BYTES - start, format, args);
    va_end(args);
    len = start + (n < 0 ? 0 : (size_t)n);
    if (len > LINE_MAX_BYTES - 1) {
        len = LINE_MAX_BYTES - 1;
    }
    line[len++] = '\n';
    if (write(STDERR_FILENO, line, len) < 0) {
        /* There is nobody left to tell. */
    }
    errno = saved_errno;
}
