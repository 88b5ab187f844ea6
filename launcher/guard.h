/*
 * The guard: the process that forks the workers, ends them, and proves that
 * nothing of them is left.
 *
 * Forked from the agent before it has any thread, loop or socket;
 * single-threaded, poll(2), own session, child subreaper, every signal
 * blocked. When the agent's end of the pair closes, for whatever
 * cause, it kills everything at once.
 */
#ifndef FLAUNCH_LAUNCHER_GUARD_H
#define FLAUNCH_LAUNCHER_GUARD_H

#include "common/err.h"
#include "launcher/inherited.h"

#include <sys/types.h>

/* The guard, as the agent sees it. */
struct guard_process {
    pid_t pid;
    int fd; /* the agent's end of the pair */
};

struct guard_setup {
    const struct inherited *inherited;
    bool pidns;             /* as process 1 of a PID namespace */
    const char *run_dir;    /* made and removed by the guard; may be NULL */
    const char *timer_file; /* removed by the guard; may be NULL */
    char **argv; /* main's: the guard overwrites its copy of them, so that
                  * `pkill flaunch` and `ps` tell the two apart */
    int argc;
};

/* Fork the guard: 0 or a negative errno with a sentence. */
int guard_start(const struct guard_setup *setup,
                struct guard_process *guard_out, struct err *err);

#endif
