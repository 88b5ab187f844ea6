/*
 * Loading a shared library and a table of its functions.
 */
#ifndef FLAUNCH_COMMON_DYNLIB_H
#define FLAUNCH_COMMON_DYNLIB_H

#include <stdbool.h>
#include <stddef.h>

struct dynlib_symbol {
    const char *name; /* NULL ends the table */
    void **address;
    bool optional; /* may be missing: its address is then NULL */
};

/*
 * Find the functions of symbols: in what the program has loaded already where
 * the first of them is there; else in the first of names (NULL at its end) that
 * somebody has loaded for himself; else in the first that can be opened.
 *
 * library_out  the handle, or NULL for the program's own copy; never closed,
 *              since such libraries do not survive it
 *
 * Returns 0, or -ENOENT with the linker's words in why.
 */
int dynlib_load(const char *const *names, const struct dynlib_symbol *symbols,
                void **library_out, char *why, size_t why_size);

/* The file that holds the function that a pointer of a table names; "" where
 * that is not known. */
void dynlib_path(void *const *function, char *path_out, size_t size);

#endif
