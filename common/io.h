/*
 * Small files and whole writes.
 */
#ifndef FLAUNCH_COMMON_IO_H
#define FLAUNCH_COMMON_IO_H

#include <stddef.h>

/* Write all of data to a blocking descriptor: 0 or a negative errno. */
int io_write_all(int fd, const void *data, size_t len);

/*
 * The first size - 1 bytes of a file as a string; what /proc and /sys give in
 * one read. Returns the length or a negative errno.
 */
int io_read_text(const char *path, char *text_out, size_t size);

#endif
