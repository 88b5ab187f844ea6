#include "worker/meet.h"

#include <assert.h>
#include <errno.h>

int meet_open(struct meet *meet, struct detected *detected,
              uint64_t deadline_ms, struct err *err)
{
    *meet = (struct meet){ 0 };
    switch (detected->channel) {
    case CHANNEL_PMI:
        return meet_pmi_open(meet, detected, deadline_ms, err);
    case CHANNEL_PMIX:
        return meet_pmix_open(meet, detected, deadline_ms, err);
    case CHANNEL_HOROVOD:
        return meet_horovod_open(meet, detected, deadline_ms, err);
    case CHANNEL_FILE:
        return meet_file_open(meet, detected, deadline_ms, err);
    default:
        assert(false); /* the others have an address, and need no channel */
        return -EINVAL;
    }
}

void meet_close(struct meet *meet, uint64_t deadline_ms)
{
    if (meet->ops != NULL) {
        meet->ops->close(meet, deadline_ms);
    }
    *meet = (struct meet){ 0 };
}
