/*
 * Kill and reap every descendant of this process, and prove that none is
 * left: scan, kill, reap, until the kernel says that there are no children.
 *
 * The process must be a child subreaper: then what leaves its parent, its
 * group and its session still ends up here, and "no children" is a proof, not
 * a hope.
 */
#ifndef FLAUNCH_LAUNCHER_GUARD_REAP_H
#define FLAUNCH_LAUNCHER_GUARD_REAP_H

#include "launcher/proc_table.h"

#include <stdint.h>
#include <sys/resource.h>

/* How long a process may resist SIGKILL (D state) before we give up. */
#define REAP_LIMIT_MS 10000

/* Told of every child that was reaped. */
typedef void reap_fn(pid_t pid, int wait_status, const struct rusage *usage,
                     void *arg);

/* skip: children that are not ours to end (the caller's memory). */
struct reaper {
    reap_fn *reaped; /* may be NULL */
    void *arg;
    struct proc_skip skip;
    struct proc_table table;
    uint64_t give_up_ms; /* 0: the kill has not begun */
    unsigned pause_ms;
};

enum reap_state {
    REAP_EMPTY,   /* no descendant is left */
    REAP_AGAIN,   /* call again after pause_ms, or on SIGCHLD */
    REAP_GAVE_UP, /* REAP_LIMIT_MS are over; table has what is left */
};

/* Reap what has ended by now; true when there are no children at all. */
bool reaper_collect(struct reaper *reaper);

/* The same, and true also when only such are left as are in skip. */
bool reaper_is_empty(struct reaper *reaper);

/*
 * Send signo to every live descendant; how many there were. Counts nothing
 * that is in skip.
 */
size_t reaper_signal_all(struct reaper *reaper, int signo);

/* One round of scan, kill, reap. */
enum reap_state reaper_kill_step(struct reaper *reaper);

/* Rounds until it is not REAP_AGAIN any more; blocks up to REAP_LIMIT_MS. */
enum reap_state reaper_kill_all(struct reaper *reaper);

void reaper_destroy(struct reaper *reaper);

#endif
