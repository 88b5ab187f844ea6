#include "launcher/terminal.h"

#include <string.h>
#include <unistd.h>

void terminal_save(struct terminal *terminal_out)
{
    memset(terminal_out, 0, sizeof(*terminal_out));
    terminal_out->known = tcgetpgrp(STDIN_FILENO) == getpgrp() &&
                          tcgetattr(STDIN_FILENO, &terminal_out->modes) == 0;
}

void terminal_restore(const struct terminal *terminal)
{
    if (terminal->known && tcgetpgrp(STDIN_FILENO) == getpgrp()) {
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal->modes);
    }
}
