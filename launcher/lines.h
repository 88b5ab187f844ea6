/*
 * Bytes of many workers to whole lines on one screen, with a prefix where one
 * is asked for; no I/O.
 *
 * A piece ends with \n or \r, which is kept. No two sources ever share a line:
 * where one has left a line unfinished and another has something to say, a
 * newline goes between, but not after \r. A line longer than LINES_MAX goes
 * out in pieces, each but the last with LINES_CUT at its end.
 */
#ifndef FLAUNCH_LAUNCHER_LINES_H
#define FLAUNCH_LAUNCHER_LINES_H

#include "common/buf.h"

#define LINES_MAX ((size_t)64 * 1024)
#define LINES_CUT " [...]\n"
#define LINES_HEADER_MAX ((size_t)1024)

/* One stream of one worker. */
struct line_source {
    const char *header; /* a string before each piece; "" or NULL: none */
    size_t header_len;  /* less than LINES_HEADER_MAX with any stamp */
    bool after_cr;      /* its last byte that went out was \r */
};

/* One screen: what stands there last. */
struct line_sink {
    const struct line_source *last;
    bool mid_line; /* and its line is unfinished */
};

/*
 * Append to out what may go out of data, at most room bytes.
 *
 * stamp  goes before the header: a time, or ""
 * final  an unfinished line goes out as well; it stays open, and may go on
 *
 * Returns how many bytes of data were taken, or -ENOMEM. Nothing is taken
 * where room does not suffice for one piece: LINES_MAX + LINES_HEADER_MAX
 * always do.
 */
ptrdiff_t lines_take(struct line_sink *sink, struct line_source *source,
                     const uint8_t *data, size_t len, bool final,
                     const char *stamp, struct buf *out, size_t room);

/* Append what ends an open line, so that other text may follow: 0 or
 * -ENOMEM. */
int lines_close(struct line_sink *sink, struct buf *out);

#endif
