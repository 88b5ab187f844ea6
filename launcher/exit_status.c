#include "launcher/exit_status.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

/* sigabbrev_np would say the same, but is younger than our oldest systems. */
static const struct {
    int signo;
    const char *name;
} signal_names[] = {
    { SIGHUP, "SIGHUP" },   { SIGINT, "SIGINT" },
    { SIGQUIT, "SIGQUIT" }, { SIGILL, "SIGILL" },
    { SIGTRAP, "SIGTRAP" }, { SIGABRT, "SIGABRT" },
    { SIGBUS, "SIGBUS" },   { SIGFPE, "SIGFPE" },
    { SIGKILL, "SIGKILL" }, { SIGUSR1, "SIGUSR1" },
    { SIGSEGV, "SIGSEGV" }, { SIGUSR2, "SIGUSR2" },
    { SIGPIPE, "SIGPIPE" }, { SIGALRM, "SIGALRM" },
    { SIGTERM, "SIGTERM" }, { SIGSTKFLT, "SIGSTKFLT" },
    { SIGCHLD, "SIGCHLD" }, { SIGCONT, "SIGCONT" },
    { SIGSTOP, "SIGSTOP" }, { SIGTSTP, "SIGTSTP" },
    { SIGTTIN, "SIGTTIN" }, { SIGTTOU, "SIGTTOU" },
    { SIGURG, "SIGURG" },   { SIGXCPU, "SIGXCPU" },
    { SIGXFSZ, "SIGXFSZ" }, { SIGVTALRM, "SIGVTALRM" },
    { SIGPROF, "SIGPROF" }, { SIGWINCH, "SIGWINCH" },
    { SIGIO, "SIGIO" },     { SIGPWR, "SIGPWR" },
    { SIGSYS, "SIGSYS" },
};

int exit_status_code(int wait_status)
{
    if (WIFSIGNALED(wait_status)) {
        return EXIT_SIGNAL_BASE + WTERMSIG(wait_status);
    }
    return WEXITSTATUS(wait_status);
}

const char *exit_status_signal_name(int signo, char *buffer, size_t size)
{
    size_t i;

    for (i = 0; i < sizeof(signal_names) / sizeof(signal_names[0]); i++) {
        if (signal_names[i].signo == signo) {
            return signal_names[i].name;
        }
    }
    if (signo >= SIGRTMIN && signo <= SIGRTMAX) {
        (void)snprintf(buffer, size, "SIGRTMIN+%d", signo - SIGRTMIN);
    } else {
        (void)snprintf(buffer, size, "signal %d", signo);
    }
    return buffer;
}

void exit_status_describe(int wait_status, char *text_out, size_t size)
{
    char name[32];

    if (WIFSIGNALED(wait_status)) {
        (void)snprintf(
            text_out, size, "was killed by %s%s",
            exit_status_signal_name(WTERMSIG(wait_status), name, sizeof(name)),
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
