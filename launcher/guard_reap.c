#include "launcher/guard_reap.h"

#include "common/clock.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAUSE_FIRST_MS 1
#define PAUSE_MAX_MS 100

/* Whether all that is left is not ours to end. */
static bool only_skipped(struct reaper *reaper)
{
    return (reaper->skip.n_pids > 0 || reaper->skip.names != NULL) &&
           proc_table_scan(&reaper->table) == 0 &&
           proc_table_mark(&reaper->table, getpid(), &reaper->skip) == 0;
}

bool reaper_collect(struct reaper *reaper)
{
    for (;;) {
        struct rusage usage;
        int status;
        pid_t pid = wait4(-1, &status, WNOHANG | __WALL, &usage);

        if (pid == 0) {
            return false;
        }
        if (pid < 0) {
            if (errno == EINTR) {
                continue;
            }
            return true;
        }
        if (reaper->reaped != NULL) {
            reaper->reaped(pid, status, &usage, reaper->arg);
        }
    }
}

bool reaper_is_empty(struct reaper *reaper)
{
    return reaper_collect(reaper) || only_skipped(reaper);
}

size_t reaper_signal_all(struct reaper *reaper, int signo)
{
    size_t n_live = 0;
    size_t i;

    if (proc_table_scan(&reaper->table) < 0) {
        return 1; /* not known, so not none */
    }
    (void)proc_table_mark(&reaper->table, getpid(), &reaper->skip);
    for (i = 0; i < reaper->table.n; i++) {
        const struct proc *proc = &reaper->table.procs[i];

        /*
         * A descendant's pid cannot be anybody else's: until we reap it, or
         * its parent does, it is taken; and what a parent reaped between the
         * scan and now would have to come round all of pid_max first.
         */
        if (proc->descendant && proc->state != 'Z') {
            n_live++;
            (void)kill(proc->pid, signo);
        }
    }
    return n_live;
}

enum reap_state reaper_kill_step(struct reaper *reaper)
{
    uint64_t now_ms = clock_ms();

    if (reaper->give_up_ms == 0) {
        reaper->give_up_ms = now_ms + REAP_LIMIT_MS;
        reaper->pause_ms = PAUSE_FIRST_MS;
    }
    if (reaper_collect(reaper)) {
        return REAP_EMPTY;
    }
    (void)reaper_signal_all(reaper, SIGKILL);
    if (reaper_is_empty(reaper)) {
        return REAP_EMPTY;
    }
    if (now_ms >= reaper->give_up_ms) {
        return REAP_GAVE_UP;
    }
    return REAP_AGAIN;
}

enum reap_state reaper_kill_all(struct reaper *reaper)
{
    for (;;) {
        enum reap_state state = reaper_kill_step(reaper);

        if (state != REAP_AGAIN) {
            return state;
        }
        clock_sleep_ms(reaper->pause_ms);
        reaper->pause_ms = reaper->pause_ms * 2 < PAUSE_MAX_MS
                               ? reaper->pause_ms * 2
                               : PAUSE_MAX_MS;
    }
}

void reaper_destroy(struct reaper *reaper)
{
    proc_table_destroy(&reaper->table);
}
