#include "launcher/patience.h"

static void time_is_up(uv_timer_t *timer)
{
    struct patience *patience = timer->data;
    uint64_t written;
    size_t queued;

    streams_progress(patience->streams, &written, &queued);
    if (written == patience->written) {
        patience->lost(patience->arg);
        return;
    }
    patience->written = written;
}

void patience_init(struct patience *patience, uv_loop_t *loop,
                   struct streams *streams, void (*lost)(void *arg), void *arg)
{
    patience->streams = streams;
    patience->lost = lost;
    patience->arg = arg;
    (void)uv_timer_init(loop, &patience->timer);
    patience->timer.data = patience;
}

void patience_begin(struct patience *patience, uint64_t limit_ms)
{
    size_t queued;

    streams_progress(patience->streams, &patience->written, &queued);
    (void)uv_timer_start(&patience->timer, time_is_up, limit_ms, limit_ms);
}

void patience_end(struct patience *patience)
{
    (void)uv_timer_stop(&patience->timer);
}

void patience_close(struct patience *patience)
{
    uv_close((uv_handle_t *)&patience->timer, NULL);
}
