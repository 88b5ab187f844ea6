/*
 * What may be said often, said seldom: a few lines in a while, and then how
 * many were left out.
 */
#ifndef FLAUNCH_COMMON_LOG_LIMIT_H
#define FLAUNCH_COMMON_LOG_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_LIMIT_LINES 10
#define LOG_LIMIT_MS 10000

/* Zero-initialise. */
struct log_limit {
    uint64_t since_ms;
    size_t n_lines; /* asked for since then */
};

/*
 * Whether a line may be said at now_ms; n_left_out_out is how many could not
 * since the last that was said.
 */
bool log_limit_take(struct log_limit *limit, uint64_t now_ms,
                    size_t *n_left_out_out);

#endif
