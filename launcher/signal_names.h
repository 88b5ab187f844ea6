/*
 * Signals by name and number, and lists of them.
 */
#ifndef FLAUNCH_LAUNCHER_SIGNAL_NAMES_H
#define FLAUNCH_LAUNCHER_SIGNAL_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* "SIGTERM", "SIGRTMIN+3", "signal 77". The text lives in buffer or longer. */
const char *signal_name(int signo, char *buffer, size_t size);

/* The signal of a name such as "SIGUSR1", "usr1" or of a number; 0: none. */
int signal_number(const char *name, size_t len);

/* Whether a list of signals, 0 at its end, holds one. */
bool signal_list_has(const int *list, int signo);

#endif
