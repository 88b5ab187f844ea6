/*
 * Scripts that complete flaunch's options in a shell, from the option table.
 */
#ifndef FLAUNCH_LAUNCHER_COMPLETION_H
#define FLAUNCH_LAUNCHER_COMPLETION_H

#include <stdio.h>

/* Print the script for "bash", "zsh" or "fish": 0, or -EINVAL for another. */
int completion_print(const char *shell, FILE *file);

#endif
