#include "launcher/restarts.h"

void restarts_init(struct restarts *restarts, uint32_t max,
                   uint64_t first_wait_ms)
{
    *restarts = (struct restarts){ .max = max,
                                   .first_wait_ms = first_wait_ms,
                                   .next_wait_ms = first_wait_ms };
}

/* The wait doubles from one short attempt to the next; a long one begins
 * anew. */
static uint64_t wait_take(struct restarts *restarts, uint64_t lasted_ms)
{
    uint64_t wait_ms = restarts->next_wait_ms;

    if (lasted_ms >= RESTARTS_SHORT_MS) {
        restarts->next_wait_ms = restarts->first_wait_ms;
        return 0;
    }
    restarts->next_wait_ms =
        wait_ms * 2 < RESTARTS_WAIT_MAX_MS ? wait_ms * 2 : RESTARTS_WAIT_MAX_MS;
    if (restarts->first_wait_ms == 0) {
        restarts->next_wait_ms = 0;
    }
    return wait_ms;
}

bool restarts_take(struct restarts *restarts, uint64_t lasted_ms,
                   uint64_t *wait_out)
{
    if (restarts->used >= restarts->max) {
        return false;
    }
    restarts->used++;
    *wait_out = wait_take(restarts, lasted_ms);
    return true;
}
