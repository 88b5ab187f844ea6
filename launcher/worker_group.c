#include "launcher/worker_group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

bool worker_ended_well(const struct worker *worker)
{
    return worker->state == WORKER_EXITED && worker->wait_status == 0 &&
           !worker->overdue;
}

int worker_group_init(struct worker_group *group, uint32_t n)
{
    *group = (struct worker_group){ .n = n, .first_failure = WORKER_NONE };
    group->workers = calloc(n, sizeof(*group->workers));
    return group->workers != NULL ? 0 : -ENOMEM;
}

void worker_group_destroy(struct worker_group *group)
{
    free(group->workers);
    *group = (struct worker_group){ .first_failure = WORKER_NONE };
}

static bool worker_done(struct worker_group *group, uint32_t rank, bool failed)
{
    group->n_done++;
    if (failed && group->first_failure == WORKER_NONE &&
        !group->workers[rank].stopped_by_us) {
        group->first_failure = rank;
        return true;
    }
    return false;
}

static bool worker_exited(struct worker_group *group, struct worker *worker,
                          const struct guard_msg *msg)
{
    if (worker->state == WORKER_FAILED) {
        worker->ended_ns = msg->at_ns;
        return false; /* the child that could not exec has ended */
    }
    if (worker->state != WORKER_RUNNING) {
        return false;
    }
    worker->state = WORKER_EXITED;
    worker->wait_status = (int)msg->status;
    worker->ended_ns = msg->at_ns;
    worker->peak_kib = msg->peak_kib;
    group->n_running--;
    if (worker->stopped_by_us && msg->at_ns < group->stop_ns) {
        worker->stopped_by_us = false; /* its end and our stop crossed */
        group->n_stopped--;
    }
    return worker_done(group, msg->worker, !worker_ended_well(worker));
}

static bool worker_failed(struct worker_group *group, struct worker *worker,
                          const struct guard_msg *msg)
{
    if (worker->state == WORKER_RUNNING) {
        group->n_running--;
    } else if (worker->state != WORKER_WAITING) {
        return false;
    }
    worker->state = WORKER_FAILED;
    worker->step = msg->step;
    worker->error = msg->error;
    return worker_done(group, msg->worker, true);
}

bool worker_group_take(struct worker_group *group, const struct guard_msg *msg)
{
    struct worker *worker;

    if (msg->worker >= group->n) {
        return false;
    }
    worker = &group->workers[msg->worker];
    switch (msg->type) {
    case GUARD_SPAWNED:
        worker->state = WORKER_RUNNING;
        worker->pid = msg->pid;
        worker->started_ns = msg->at_ns;
        group->n_running++;
        if (group->stop_ns != 0) {
            worker_group_stopped(group, group->stop_ns);
        }
        return false;
    case GUARD_EXITED:
        return worker_exited(group, worker, msg);
    case GUARD_FAILED:
        return worker_failed(group, worker, msg);
    default:
        return false;
    }
}

void worker_group_stopped(struct worker_group *group, uint64_t now_ns)
{
    uint32_t i;

    if (group->stop_ns == 0) {
        group->stop_ns = now_ns;
    }
    for (i = 0; i < group->n; i++) {
        if (group->workers[i].state == WORKER_RUNNING &&
            !group->workers[i].stopped_by_us) {
            group->workers[i].stopped_by_us = true;
            group->n_stopped++;
        }
    }
}

void worker_group_list_running(const struct worker_group *group, char *text_out,
                               size_t size)
{
    size_t len = 0;
    uint32_t i;

    text_out[0] = '\0';
    for (i = 0; i < group->n; i++) {
        if (group->workers[i].state != WORKER_RUNNING) {
            continue;
        }
        if (len + 24 > size) {
            (void)snprintf(text_out + len, size - len, " ...");
            return;
        }
        len += (size_t)snprintf(text_out + len, size - len, "%s%u",
                                len > 0 ? ", " : "", group->base_rank + i);
    }
}

int worker_group_running_pids(const struct worker_group *group,
                              pid_t **pids_out, uint32_t *n_out)
{
    pid_t *pids = calloc((size_t)group->n + 1, sizeof(*pids));
    uint32_t n = 0;
    uint32_t i;

    if (pids == NULL) {
        return -ENOMEM;
    }
    for (i = 0; i < group->n; i++) {
        if (group->workers[i].state == WORKER_RUNNING) {
            pids[n++] = (pid_t)group->workers[i].pid;
        }
    }
    *pids_out = pids;
    *n_out = n;
    return 0;
}
