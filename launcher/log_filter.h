/*
 * Lines that hold one of some texts, written to a file of their own as well:
 * torchrun's duplicate filters.
 */
#ifndef FLAUNCH_LAUNCHER_LOG_FILTER_H
#define FLAUNCH_LAUNCHER_LOG_FILTER_H

#include "common/buf.h"

#include <stdbool.h>

/* fd -1: not open. */
struct log_filter {
    struct buf *texts;
    size_t n_texts;
    int fd;
    int error;     /* the first one, a positive errno */
    uint64_t lost; /* bytes that could not be written */
};

/*
 * Read the list "a,b" (two commas are one in a text; an empty text matches
 * every line) and open path for appending. 0 or a negative errno.
 */
int log_filter_open(struct log_filter *filter, const char *list,
                    const char *path);

/* Whether a line holds one of the texts. */
bool log_filter_matches(const struct log_filter *filter, const uint8_t *line,
                        size_t len);

/* Write those of data's whole lines that match, each behind header. */
void log_filter_write(struct log_filter *filter, const char *header,
                      size_t header_len, const uint8_t *data, size_t len);

void log_filter_close(struct log_filter *filter);

#endif
