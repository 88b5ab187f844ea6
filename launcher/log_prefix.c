#include "launcher/log_prefix.h"

#include "launcher/template.h"

#include <stdio.h>
#include <time.h>

size_t log_prefix_fill(const char *pattern,
                       const struct log_prefix_values *values, char *text_out,
                       size_t size)
{
    char rank[16];
    char local_rank[16];
    const struct template_value names[] = {
        { "role_name", values->role_name },
        { "host", values->host },
        { "rank", rank },
        { "local_rank", local_rank },
    };
    size_t len;

    (void)snprintf(rank, sizeof(rank), "%u", values->rank);
    (void)snprintf(local_rank, sizeof(local_rank), "%u", values->local_rank);
    len = template_fill(pattern, names, sizeof(names) / sizeof(names[0]),
                        text_out, size);
    return len < size ? len : size - 1;
}

void log_prefix_stamp(char *text_out, size_t size)
{
    struct timespec now;
    struct tm parts;
    size_t len;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)localtime_r(&now.tv_sec, &parts);
    len = strftime(text_out, size, "%Y-%m-%d %H:%M:%S", &parts);
    (void)snprintf(text_out + len, size - len, ".%03ld ",
                   now.tv_nsec / 1000000);
}
