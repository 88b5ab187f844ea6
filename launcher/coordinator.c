#include "launcher/coordinator.h"

void coordinator_init(struct coordinator *coordinator, uint32_t max_restarts,
                      uint64_t backoff_first_ms)
{
    *coordinator = (struct coordinator){
        .max_restarts = max_restarts,
        .backoff_first_ms = backoff_first_ms,
        .next_backoff_ms = backoff_first_ms,
    };
}

/* The wait before the next attempt; it doubles from one short attempt to the
 * next, and a long one begins anew. */
static uint64_t backoff_take(struct coordinator *coordinator,
                             uint64_t lasted_ms)
{
    uint64_t delay_ms = coordinator->next_backoff_ms;

    if (lasted_ms >= COORDINATOR_SHORT_MS) {
        coordinator->next_backoff_ms = coordinator->backoff_first_ms;
        return 0;
    }
    coordinator->next_backoff_ms = delay_ms * 2 < COORDINATOR_BACKOFF_MAX_MS
                                       ? delay_ms * 2
                                       : COORDINATOR_BACKOFF_MAX_MS;
    if (coordinator->backoff_first_ms == 0) {
        coordinator->next_backoff_ms = 0;
    }
    return delay_ms;
}

bool coordinator_attempt_ended(struct coordinator *coordinator,
                               const struct attempt_end *end,
                               uint64_t *delay_out)
{
    if (!end->failed || end->for_good ||
        coordinator->restarts >= coordinator->max_restarts) {
        return false;
    }
    coordinator->restarts++;
    *delay_out = backoff_take(coordinator, end->lasted_ms);
    return true;
}
