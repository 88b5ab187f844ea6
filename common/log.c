#include "common/log.h"

#include "common/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2000

static enum log_level log_level_shown = LOG_INFO;
static log_write_fn *log_writer;
static void *log_writer_arg;

void log_set_level(enum log_level level)
{
    log_level_shown = level;
}

void log_set_writer(log_write_fn *writer, void *arg)
{
    log_writer = writer;
    log_writer_arg = arg;
}

void log_text(const char *text, size_t len)
{
    int saved_errno = errno;

    if (log_writer != NULL) {
        log_writer(text, len, log_writer_arg);
    } else if (write(STDERR_FILENO, text, len) < 0) {
        /* There is nobody left to tell. */
    }
    errno = saved_errno;
}

void log_line(enum log_level level, const char *format, ...)
{
    char line[LINE_MAX_BYTES + 2] = "flaunch: ";
    const size_t start = sizeof("flaunch: ") - 1;
    char text[LINE_MAX_BYTES];
    int saved_errno = errno;
    va_list args;
    size_t len;

    if (level > log_level_shown) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    len = start + text_escape(line + start, LINE_MAX_BYTES - start, text);
    line[len++] = '\n';
    log_text(line, len);
    errno = saved_errno;
}
