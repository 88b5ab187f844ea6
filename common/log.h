/*
 * Diagnostics on stderr: one line each, "flaunch: " and a sentence.
 *
 * A line is written with one write(2), so lines of threads do not mix; control
 * characters in it, say of a file's name, are written as \xNN. Level and
 * writer are the only mutable globals of the program; they are set by main and
 * agent.
 */
#ifndef FLAUNCH_COMMON_LOG_H
#define FLAUNCH_COMMON_LOG_H

#include <stddef.h>

enum log_level {
    LOG_ERROR, /* the job cannot go on, or ended badly */
    LOG_WARN,  /* the job goes on; a person should look */
    LOG_INFO,  /* what a person should know; shown by default */
    LOG_DEBUG, /* what a developer asks for: FLAUNCH_DEBUG=detail */
};

/* Lines above this level are not written; the default is LOG_INFO. */
void log_set_level(enum log_level level);

/*
 * Have lines written by write(line, len, arg) instead; NULL: to stderr again.
 * Set while only one thread runs.
 */
typedef void log_write_fn(const char *line, size_t len, void *arg);
void log_set_writer(log_write_fn *write, void *arg);

/* Write one line; longer ones are cut at 2,000 bytes. Keeps errno. */
void log_line(enum log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Write a text of whole lines as it is, at any level. Keeps errno. */
void log_text(const char *text, size_t len);

#endif
