/*
 * The stacks of processes, as gdb prints them; for --stacks.
 *
 * Life: stacks_start, then done runs once; or stacks_stop before that.
 */
#ifndef FLAUNCH_LAUNCHER_STACKS_H
#define FLAUNCH_LAUNCHER_STACKS_H

#include "common/buf.h"

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

/* All processes together have this long. */
#define STACKS_LIMIT_MS 30000

struct stacks {
    uv_poll_t poll;
    uv_timer_t timer;
    int fd;    /* what gdb prints */
    pid_t pid; /* leads a process group; whoever reaps children reaps it */
    int open_handles;
    bool stopping;
    void (*text)(const char *text, size_t len, void *arg);
    void (*done)(void *arg);
    void *arg;
};

/*
 * Print the stacks of n_pids processes, one after another: text runs for what
 * gdb says, done at the end. 0 or a negative errno; -ENOENT: no gdb in PATH.
 */
int stacks_start(struct stacks *stacks, uv_loop_t *loop, const pid_t *pids,
                 size_t n_pids,
                 void (*text)(const char *text, size_t len, void *arg),
                 void (*done)(void *arg), void *arg);

/* End it at once; done does not run. May be called at any time. */
void stacks_stop(struct stacks *stacks);

#endif
