#include "launcher/exit_status.h"

#include "launcher/signal_names.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

int exit_status_code(int wait_status)
{
    if (WIFSIGNALED(wait_status)) {
        return EXIT_SIGNAL_BASE + WTERMSIG(wait_status);
    }
    return WEXITSTATUS(wait_status);
}

void exit_status_describe(int wait_status, char *text_out, size_t size)
{
    char name[32];

    if (WIFSIGNALED(wait_status)) {
        (void)snprintf(text_out, size, "was killed by %s%s",
                       signal_name(WTERMSIG(wait_status), name, sizeof(name)),
                       WCOREDUMP(wait_status) ? " (core dumped)" : "");
        return;
    }
    (void)snprintf(text_out, size, "exited with code %d",
                   WEXITSTATUS(wait_status));
}

int exit_status_of_exec(int exec_errno)
{
    return exec_errno == ENOENT || exec_errno == ENOTDIR ? EXIT_NOT_FOUND
                                                         : EXIT_NOT_EXECUTABLE;
}
