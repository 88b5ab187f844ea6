/*
 * What flaunch itself was given by whoever started it, taken down before it
 * changes anything, so that workers get exactly that.
 */
#ifndef FLAUNCH_LAUNCHER_INHERITED_H
#define FLAUNCH_LAUNCHER_INHERITED_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct inherited {
    sigset_t mask;
    sigset_t ignored; /* of the signals that we change or watch */
    pid_t *children;  /* those we had already: a shell's "sidecar & exec" */
    size_t n_children;
};

/*
 * Take it down. Descriptors 0 to 2 that were closed are opened to /dev/null
 * first, so that no file of ours becomes somebody's stdout. The block of
 * children lives as long as the process.
 */
void inherited_take(struct inherited *inherited_out);

/* Whether HUP, INT, QUIT, TSTP, CONT or CHLD was ignored. */
bool inherited_is_ignored(const struct inherited *inherited, int signo);

/*
 * Give a child of the guard, after fork, its signals as they were found: all
 * but SIGCHLD's disposition still are; async-signal-safe.
 */
void inherited_give_signals(const struct inherited *inherited);

#endif
