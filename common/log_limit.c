#include "common/log_limit.h"

bool log_limit_take(struct log_limit *limit, uint64_t now_ms,
                    size_t *n_left_out_out)
{
    *n_left_out_out = 0;
    if (limit->n_lines == 0 || now_ms - limit->since_ms >= LOG_LIMIT_MS) {
        if (limit->n_lines > LOG_LIMIT_LINES) {
            *n_left_out_out = limit->n_lines - LOG_LIMIT_LINES;
        }
        *limit = (struct log_limit){ .since_ms = now_ms };
    }
    return ++limit->n_lines <= LOG_LIMIT_LINES;
}
