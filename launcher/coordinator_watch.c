#include "launcher/coordinator_impl.h"

#include <stdio.h>

/* Declared dead: it is told so, for the case that it lives. */
static void silence_is_over(struct coordinator *coordinator, uint32_t id,
                            uint64_t now_ms)
{
    char why[96];

    (void)snprintf(why, sizeof(why), "nothing was heard of it for %g s",
                   (double)coordinator->config.lease_ms / 1000);
    coordinator_gone(coordinator, id, why, now_ms);
    coordinator_refuse(
        coordinator, id,
        "nothing was heard of this node for %g s, and so it was declared "
        "lost",
        (double)coordinator->config.lease_ms / 1000);
}

static void look_at(struct coordinator *coordinator, uint32_t id,
                    uint64_t now_ms)
{
    struct member *row = coordinator_row(coordinator, id);
    uint64_t silent_ms = now_ms - row->heard_ms;

    switch (row->state) {
    case MEMBER_HELD:
        coordinator_admit(coordinator, id, now_ms);
        break;
    case MEMBER_NEW:
        if (now_ms - row->since_ms >= COORDINATOR_HELLO_MS) {
            coordinator_refuse(coordinator, id, "no HELLO came");
        }
        break;
    case MEMBER_HERE:
    case MEMBER_RUNNING:
    case MEMBER_ENDED:
    case MEMBER_OVER:
        row->quiet = silent_ms >= COORDINATOR_SUSPECT_MS;
        if (silent_ms >= coordinator->config.lease_ms) {
            silence_is_over(coordinator, id, now_ms);
        }
        break;
    default:
        break;
    }
}

/*
 * We were held up ourselves, and what was sent to us meanwhile waits to be
 * read: nobody is silent for that time.
 */
static void forgive(struct coordinator *coordinator, uint64_t gap_ms,
                    uint64_t now_ms)
{
    uint32_t i;

    for (i = MEMBER_LOCAL + 1; i < coordinator->members.n; i++) {
        struct member *row = coordinator_row(coordinator, i);
        uint64_t heard_ms = row->heard_ms + gap_ms;

        row->heard_ms = heard_ms < now_ms ? heard_ms : now_ms;
        row->since_ms += gap_ms;
    }
}

bool coordinator_watches(const struct coordinator *coordinator)
{
    return coordinator->members.n_used > 1;
}

void coordinator_look(struct coordinator *coordinator, uint64_t now_ms)
{
    uint64_t gap_ms = now_ms - coordinator->look_ms;
    uint32_t i;

    coordinator->look_ms = now_ms;
    if (gap_ms > 2 * (uint64_t)COORDINATOR_LOOK_MS) {
        forgive(coordinator, gap_ms - COORDINATOR_LOOK_MS, now_ms);
        return;
    }
    for (i = MEMBER_LOCAL + 1; i < coordinator->members.n; i++) {
        look_at(coordinator, i, now_ms);
    }
}
