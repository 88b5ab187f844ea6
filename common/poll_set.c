#include "common/poll_set.h"

#include <errno.h>
#include <unistd.h>

#define ROUNDS 8

int poll_set_open(struct poll_set *set)
{
    set->n_ready = 0;
    set->next = 0;
    set->fd = epoll_create1(EPOLL_CLOEXEC);
    return set->fd < 0 ? -errno : 0;
}

void poll_set_close(struct poll_set *set)
{
    if (set->fd >= 0) {
        (void)close(set->fd);
    }
    set->fd = -1;
}

int poll_set_ask(struct poll_set *set, struct poll_item *item, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = item };
    int op = item->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

    if (events != item->events &&
        epoll_ctl(set->fd, op, item->fd, &event) < 0) {
        return -errno;
    }
    item->events = events;
    return 0;
}

void poll_set_remove(struct poll_set *set, struct poll_item *item)
{
    int i;

    if (item->events == 0) {
        return;
    }
    (void)epoll_ctl(set->fd, EPOLL_CTL_DEL, item->fd, NULL);
    item->events = 0;
    for (i = set->next; i < set->n_ready; i++) {
        if (set->batch[i].data.ptr == item) {
            set->batch[i].data.ptr = NULL;
        }
    }
}

static void dispatch_once(struct poll_set *set)
{
    set->next = 0;
    set->n_ready = epoll_wait(set->fd, set->batch, POLL_SET_BATCH, 0);
    while (set->next < set->n_ready) {
        struct epoll_event *event = &set->batch[set->next++];
        struct poll_item *item = event->data.ptr;

        if (item != NULL) {
            item->ready(item, event->events);
        }
    }
}

void poll_set_dispatch(struct poll_set *set)
{
    int i;

    /* Where several are busy more will be ready by now: that spares a turn of
     * the loop. */
    for (i = 0; i < ROUNDS && (i == 0 || set->n_ready > 1); i++) {
        dispatch_once(set);
    }
    set->n_ready = 0;
}
