/*
 * Workers of a made-up job: started at second 1, told of as the guard tells.
 */
#ifndef FLAUNCH_TESTS_UNIT_GROUP_H
#define FLAUNCH_TESTS_UNIT_GROUP_H

#include "launcher/worker_group.h"
#include "tests/unit/unit.h"

/* When the others end, in these jobs, and when a stop begins after that. */
#define GROUP_SECOND_NS 1000000000ULL
#define GROUP_STOP_NS (4 * GROUP_SECOND_NS)

static inline void group_start(struct worker_group *group, uint32_t n)
{
    uint32_t i;

    assert_int_equal(worker_group_init(group, n), 0);
    for (i = 0; i < n; i++) {
        struct guard_msg msg = { .type = GUARD_SPAWNED,
                                 .worker = i,
                                 .pid = 100 + i,
                                 .at_ns = GROUP_SECOND_NS };

        assert_false(worker_group_take(group, &msg));
    }
    assert_int_equal(group->n_running, n);
}

/* A worker has ended; true for the first failure. */
static inline bool group_end(struct worker_group *group, uint32_t worker,
                             uint32_t status, uint64_t at_ns)
{
    struct guard_msg msg = { .type = GUARD_EXITED,
                             .worker = worker,
                             .status = status,
                             .at_ns = at_ns,
                             .peak_kib = 2048 };

    return worker_group_take(group, &msg);
}

#endif
