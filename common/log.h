/*
 * Diagnostics on stderr: one line each, "flaunch: " and a sentence.
 *
 * A line is written with one write(2), so lines of threads do not mix. The
 * level is the one mutable global of the program; it is set once at start.
 */
#ifndef FLAUNCH_COMMON_LOG_H
#define FLAUNCH_COMMON_LOG_H

enum log_level {
    LOG_ERROR, /* the job cannot go on, or ended badly */
    LOG_WARN,  /* the job goes on; a person should look */
    LOG_INFO,  /* what a person should know; shown by default */
    LOG_DEBUG, /* what a developer asks for: FLAUNCH_DEBUG=detail */
};

/* Lines above this level are not written; the default is LOG_INFO. */
void log_set_level(enum log_level level);

/* Write one line; longer ones are cut at 2,000 bytes. Keeps errno. */
void log_line(enum log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
