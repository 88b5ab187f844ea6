/*
 * Many descriptors behind one: epoll, to be watched by a loop as a single
 * handle. uv_poll_init tries each descriptor with calls of the kernel before
 * it takes it, and a uv_poll_t is 160 bytes: too dear where clients come by
 * thousands at once.
 */
#ifndef FLAUNCH_COMMON_POLL_SET_H
#define FLAUNCH_COMMON_POLL_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#define POLL_SET_BATCH 512

/* One descriptor; a member of its owner. */
struct poll_item {
    int fd;
    uint32_t events; /* asked for, EPOLLIN and EPOLLOUT; 0: not in the set */
    void (*ready)(struct poll_item *item, uint32_t events);
};

struct poll_set {
    int fd; /* readable while any item is ready */
    int n_ready;
    int next;
    struct epoll_event batch[POLL_SET_BATCH];
};

/* 0 or a negative errno. */
int poll_set_open(struct poll_set *set);
void poll_set_close(struct poll_set *set);

/* Have ready called while item->fd is one of events, which is not 0. 0 or a
 * negative errno. */
int poll_set_ask(struct poll_set *set, struct poll_item *item, uint32_t events);

/* Forget item; from here on ready is not called, so it may be freed. Call it
 * before the descriptor is closed. */
void poll_set_remove(struct poll_set *set, struct poll_item *item);

/* Call ready of items that are, each a few times at most; waits for none. Items
 * may be asked for and removed meanwhile. */
void poll_set_dispatch(struct poll_set *set);

#endif
