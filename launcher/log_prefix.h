/*
 * What stands before each line of a worker on the screen; text only.
 */
#ifndef FLAUNCH_LAUNCHER_LOG_PREFIX_H
#define FLAUNCH_LAUNCHER_LOG_PREFIX_H

#include <stddef.h>
#include <stdint.h>

/* torchrun's, for what is teed. */
#define LOG_PREFIX_DEFAULT "[${role_name}${local_rank}]:"

struct log_prefix_values {
    const char *role_name;
    const char *host;
    uint32_t rank;
    uint32_t local_rank;
};

/*
 * Fill in a template: ${role_name}, ${rank}, ${local_rank}, ${host}, also
 * without braces; $$ is a dollar sign, any other name stays as it is. Cut at
 * size - 1 bytes; returns the length.
 */
size_t log_prefix_fill(const char *pattern,
                       const struct log_prefix_values *values, char *text_out,
                       size_t size);

/* "2026-12-01 05:12:33.123 ", local time; size at least LOG_STAMP_MAX. */
#define LOG_STAMP_MAX 40
void log_prefix_stamp(char *text_out, size_t size);

#endif
