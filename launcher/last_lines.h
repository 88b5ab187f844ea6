/*
 * The last bytes a worker wrote, and of them the last lines, for the report.
 */
#ifndef FLAUNCH_LAUNCHER_LAST_LINES_H
#define FLAUNCH_LAUNCHER_LAST_LINES_H

#include "common/buf.h"

#define LAST_LINES_BYTES ((size_t)8 * 1024)
/* A line is cut there, so that a report stays readable. */
#define LAST_LINES_WIDTH ((size_t)400)

/* Zero-initialise. */
struct last_lines {
    uint8_t *ring; /* LAST_LINES_BYTES; made at the first byte */
    size_t len;    /* how much of it counts */
    size_t next;   /* where the next byte goes */
};

/* Remember the end of data. Without memory it is forgotten. */
void last_lines_add(struct last_lines *last, const uint8_t *data, size_t len);

/* The same from the end of a file: 0 or a negative errno. */
int last_lines_read(struct last_lines *last, int fd);

/*
 * Append at most n_lines last lines, each with indent before it: what a
 * screen would show of them, so after the last \r of a line, without control
 * characters. Returns how many, or -ENOMEM.
 */
int last_lines_print(const struct last_lines *last, size_t n_lines,
                     const char *indent, struct buf *out);

void last_lines_destroy(struct last_lines *last);

#endif
