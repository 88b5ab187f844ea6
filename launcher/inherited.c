#include "launcher/inherited.h"

#include "launcher/proc_table.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
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
    struct inherited inherited = { 0 };
    struct rlimit nofile = { 0 };
    int signo;

    standard_descriptors_open();
    (void)sigprocmask(SIG_SETMASK, NULL, &inherited.mask);
    for (signo = 1; signo < NSIG; signo++) {
        struct sigaction action;

        inherited.ignored[signo] = sigaction(signo, NULL, &action) == 0 &&
                                   action.sa_handler == SIG_IGN;
    }
    (void)getrlimit(RLIMIT_NOFILE, &nofile);
    inherited.nofile_soft = nofile.rlim_cur;
    inherited.nofile_hard = nofile.rlim_max;
    children_take(&inherited);
    *inherited_out = inherited;
}

bool inherited_is_ignored(const struct inherited *inherited, int signo)
{
    return inherited->ignored[signo];
}

void inherited_give_signals(const struct inherited *inherited)
{
    struct sigaction action = { 0 };
    int signo;

    (void)sigemptyset(&action.sa_mask);
    for (signo = 1; signo < NSIG; signo++) {
        action.sa_handler = inherited->ignored[signo] ? SIG_IGN : SIG_DFL;
        (void)sigaction(signo, &action, NULL);
    }
    (void)sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
}
