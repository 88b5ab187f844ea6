#include "launcher/inherited.h"

#include "launcher/proc_table.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void standard_descriptors_open(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO) {
        (void)close(fd);
    }
}

/* Seldom any, so one call that does not scan /proc answers first. */
static void children_take(struct inherited *inherited)
{
    struct proc_table table = { 0 };
    siginfo_t info;
    size_t i;

    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        proc_table_scan(&table) < 0) {
        return;
    }
    inherited->children = calloc(table.n + 1, sizeof(pid_t));
    for (i = 0; i < table.n && inherited->children != NULL; i++) {
        if (table.procs[i].parent == getpid()) {
            inherited->children[inherited->n_children++] = table.procs[i].pid;
        }
    }
    proc_table_destroy(&table);
}

void inherited_take(struct inherited *inherited_out)
{
    static const int signals[] = { SIGHUP,  SIGINT,  SIGQUIT,
                                   SIGTSTP, SIGCONT, SIGCHLD };
    struct inherited inherited = { 0 };
    size_t i;

    standard_descriptors_open();
    (void)sigprocmask(SIG_SETMASK, NULL, &inherited.mask);
    (void)sigemptyset(&inherited.ignored);
    for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct sigaction action;

        if (sigaction(signals[i], NULL, &action) == 0 &&
            action.sa_handler == SIG_IGN) {
            (void)sigaddset(&inherited.ignored, signals[i]);
        }
    }
    children_take(&inherited);
    *inherited_out = inherited;
}

bool inherited_is_ignored(const struct inherited *inherited, int signo)
{
    return sigismember(&inherited->ignored, signo) == 1;
}

void inherited_give_signals(const struct inherited *inherited)
{
    if (inherited_is_ignored(inherited, SIGCHLD)) {
        (void)signal(SIGCHLD, SIG_IGN);
    }
    (void)sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
}
