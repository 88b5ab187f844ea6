/*
 * Files that grow: who is told when there may be more in them.
 *
 * A watch is armed for one event, so that a flood costs its writer nothing;
 * then the file is looked at every few milliseconds until it is quiet, and
 * the watch is armed again. Nothing wakes up while nothing is written.
 *
 * Life: tail_start, tail_stop, on_closed.
 */
#ifndef FLAUNCH_LAUNCHER_TAIL_H
#define FLAUNCH_LAUNCHER_TAIL_H

#include <stdbool.h>
#include <uv.h>

/* What a look at a file found. */
enum tail_look {
    TAIL_QUIET, /* nothing new */
    TAIL_MORE,  /* something; look again soon */
    TAIL_FULL,  /* something, and no room for it; tail_look_now tells of room */
};

typedef enum tail_look tail_look_fn(void *owner);

/* One file; the owner's memory. */
struct tail_file {
    int fd;    /* open for reading; the owner's */
    int watch; /* of inotify; -1: none */
    bool hot;
    void *owner;
    struct tail_file *next;
};

struct tail {
    uv_poll_t poll;
    uv_timer_t timer;
    int inotify; /* -1: not to be had */
    bool blind;  /* without it files are looked at for ever */
    int open_handles;
    bool stopping;
    struct tail_file *files;
    tail_look_fn *look;
    void (*on_closed)(void *arg);
    void *arg;
};

/* look(owner) runs for files that may have grown. */
void tail_start(struct tail *tail, uv_loop_t *loop, tail_look_fn *look,
                void (*on_closed)(void *arg), void *arg);

/* Begin to watch a file; fd and owner are set, and it is looked at soon. */
void tail_add(struct tail *tail, struct tail_file *file);

/* Watch it no more. */
void tail_remove(struct tail *tail, struct tail_file *file);

/* Look at all files that may have grown: there is room again. */
void tail_look_now(struct tail *tail);

void tail_stop(struct tail *tail);

#endif
