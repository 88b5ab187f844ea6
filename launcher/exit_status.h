/*
 * What a wait status means: an exit code of ours, and words for a person.
 */
#ifndef FLAUNCH_LAUNCHER_EXIT_STATUS_H
#define FLAUNCH_LAUNCHER_EXIT_STATUS_H

#include <stddef.h>

/* Exit codes of flaunch itself; flaunch(1), EXIT STATUS. */
enum {
    EXIT_USAGE = 2,
    EXIT_TIME_LIMIT = 124,
    EXIT_FLAUNCH = 125,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNAL_BASE = 128,
};

/* The code for a wait(2) status: the process's own, or 128 + signal. */
int exit_status_code(int wait_status);

/* "exited with code 7", "was killed by SIGSEGV (core dumped)". */
void exit_status_describe(int wait_status, char *text_out, size_t size);

/* The exit code when exec failed with this errno (> 0): 126 or 127. */
int exit_status_of_exec(int exec_errno);

#endif
