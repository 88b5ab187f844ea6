/*
 * What fuzz targets share.
 */
#ifndef FLAUNCH_TESTS_FUZZ_FUZZ_H
#define FLAUNCH_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold for every input. */
#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            abort();                                                           \
        }                                                                      \
    } while (0)

/* The input as a C string, to be freed. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    CHECK(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    return text;
}

#endif
