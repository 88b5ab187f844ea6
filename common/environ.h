/*
 * The environment of a process as data, so that tests can give another one,
 * and the sentences about what is missing in it.
 */
#ifndef FLAUNCH_COMMON_ENVIRON_H
#define FLAUNCH_COMMON_ENVIRON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct environ_view {
    /* A value or NULL. */
    const char *(*get)(const char *name, void *arg);
    /* Whether a descriptor is an open socket: a number that an outer launcher
     * left behind may since be somebody's file. */
    bool (*is_socket)(int fd, void *arg);
    void *arg;
};

const char *environ_get(const struct environ_view *view, const char *name);
bool environ_is_set(const struct environ_view *view, const char *name);

/* What reading a value came to. */
enum environ_result {
    ENVIRON_OK,
    ENVIRON_MISSING, /* why says which is not set */
    ENVIRON_BAD,     /* why says which is no number, or out of range */
};

/* A variable as an integer of min..max. */
enum environ_result environ_int(const struct environ_view *view,
                                const char *name, int64_t min, int64_t max,
                                int *value_out, char *why, size_t why_size);

/* ENVIRON_MISSING, with a sentence on name. */
enum environ_result environ_missing(char *why, size_t why_size,
                                    const char *name);

#endif
