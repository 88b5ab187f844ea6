/*
 * Strict reading of what people type and programs export: the whole text must
 * be the value, nothing is guessed.
 */
#ifndef FLAUNCH_COMMON_PARSE_H
#define FLAUNCH_COMMON_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A decimal integer of min..max: digits with at most one leading minus; no
 * blanks, no plus sign. Returns 0, -EINVAL (not a number) or -ERANGE.
 */
int parse_int(const char *text, int64_t min, int64_t max, int64_t *value_out);

/*
 * The same in what Python's int() overlooks: blanks around, a plus sign, single
 * underscores between digits. For values that torchrun reads.
 */
int parse_python_int(const char *text, int64_t min, int64_t max,
                     int64_t *value_out);

/*
 * Seconds as milliseconds: "30", "1.5", ".25"; at most a year. Digits past
 * milliseconds are dropped. Returns 0, -EINVAL or -ERANGE.
 */
int parse_seconds(const char *text, uint64_t *ms_out);

/*
 * Bytes: "8192", or with K, M or G behind, which are powers of 1024. Returns 0,
 * -EINVAL, or -ERANGE outside min..max.
 */
int parse_size(const char *text, uint64_t min, uint64_t max,
               uint64_t *bytes_out);

/*
 * The next item of a comma-separated list, blanks around it dropped.
 *
 * cursor  where to go on; NULL after the last item
 *
 * Returns false when the list has ended. An empty item is an item: "a,,b" has
 * three, "" has one.
 */
bool parse_list_next(const char **cursor, const char **item_out,
                     size_t *len_out);

/*
 * "HOST:PORT" or "[HOST]:PORT", port 1..65535. host_out gets the host
 * without brackets. Returns 0, -EINVAL, or -ERANGE where host_size is short.
 */
int parse_host_port(const char *text, char *host_out, size_t host_size,
                    uint16_t *port_out);

#endif
