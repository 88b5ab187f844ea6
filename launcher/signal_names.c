#include "launcher/signal_names.h"

#include "common/parse.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

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

const char *signal_name(int signo, char *buffer, size_t size)
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

int signal_number(const char *name, size_t len)
{
    char text[32];
    int64_t number;
    size_t i;

    if (len == 0 || len >= sizeof(text)) {
        return 0;
    }
    memcpy(text, name, len);
    text[len] = '\0';
    if (parse_int(text, 1, SIGRTMAX, &number) == 0) {
        return (int)number;
    }
    for (i = 0; i < sizeof(signal_names) / sizeof(signal_names[0]); i++) {
        if (strcasecmp(text, signal_names[i].name) == 0 ||
            strcasecmp(text, signal_names[i].name + strlen("SIG")) == 0) {
            return signal_names[i].signo;
        }
    }
    return 0;
}

bool signal_list_has(const int *list, int signo)
{
    while (*list != 0 && *list != signo) {
        list++;
    }
    return *list != 0;
}
