/*
 * The sentence a person reads when something fails, and its errno.
 *
 * Whoever detects a failure writes the sentence; callers pass it on; the top
 * prints it once. Every function that takes a struct err accepts NULL.
 */
#ifndef FLAUNCH_COMMON_ERR_H
#define FLAUNCH_COMMON_ERR_H

#define ERR_TEXT_MAX 1024

struct err {
    int code; /* 0, or the negative errno that was returned */
    char text[ERR_TEXT_MAX];
};

/* Write a sentence; returns code, which must be a negative errno. */
int err_set(struct err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, followed by ": " and the system's words for code. */
int err_sys(struct err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
