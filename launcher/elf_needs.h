/*
 * Which shared libraries an ELF file asks for.
 */
#ifndef FLAUNCH_LAUNCHER_ELF_NEEDS_H
#define FLAUNCH_LAUNCHER_ELF_NEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether one of the libraries in the file's dynamic section has a name that
 * begins with prefix. False for what is no 64-bit little-endian ELF file, or
 * is a broken one. Reads within data[0..len) only.
 */
bool elf_needs(const uint8_t *data, size_t len, const char *prefix);

/* The same for a file; false where it cannot be read. */
bool elf_file_needs(const char *path, const char *prefix);

#endif
