/*
 * The modes of the terminal that is our standard input: a worker may change
 * them, and be killed before it puts them back.
 */
#ifndef FLAUNCH_LAUNCHER_TERMINAL_H
#define FLAUNCH_LAUNCHER_TERMINAL_H

#include <stdbool.h>
#include <termios.h>

struct terminal {
    bool known; /* standard input is a terminal, and ours */
    struct termios modes;
};

void terminal_save(struct terminal *terminal_out);

/* Put the modes back where the terminal is still ours. */
void terminal_restore(const struct terminal *terminal);

#endif
