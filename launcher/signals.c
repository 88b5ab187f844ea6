#include "launcher/signals.h"

#include <errno.h>

#define N_LISTS 3

static const int always[] = { SIGTERM, SIGCHLD, SIGTSTP, SIGCONT, SIGWINCH, 0 };

static void signal_came(uv_signal_t *handle, int signo)
{
    struct signals *signals = handle->data;

    if (!signals->stopping) {
        signals->on_signal(signo, signals->arg);
    }
}

static void handle_closed(uv_handle_t *handle)
{
    struct signals *signals = handle->data;

    if (--signals->n_open == 0) {
        signals->on_closed(signals->arg);
    }
}

void signals_hold(void)
{
    sigset_t all;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static int signal_watch(struct signals *signals, uv_loop_t *loop, int signo)
{
    uv_signal_t *handle = &signals->handles[signals->n_handles];
    int rc;

    if (signals->n_handles == SIGNALS_MAX) {
        return -E2BIG;
    }
    rc = uv_signal_init(loop, handle);
    if (rc < 0) {
        return rc;
    }
    handle->data = signals;
    signals->n_handles++;
    return uv_signal_start(handle, signal_came, signo);
}

static bool is_watched(const struct signals *signals, int signo)
{
    size_t i;

    for (i = 0; i < signals->n_handles; i++) {
        if (signals->handles[i].signum == signo) {
            return true;
        }
    }
    return false;
}

/* What was ignored when we were started stays so, but for the two we need. */
static int list_watch(struct signals *signals, uv_loop_t *loop,
                      const struct inherited *inherited, const int *list)
{
    int rc = 0;

    for (; *list != 0 && rc == 0; list++) {
        if (!is_watched(signals, *list) &&
            (*list == SIGTERM || *list == SIGCHLD ||
             !inherited_is_ignored(inherited, *list))) {
            rc = signal_watch(signals, loop, *list);
        }
    }
    return rc;
}

int signals_start(struct signals *signals, uv_loop_t *loop,
                  const struct inherited *inherited, const int *stop,
                  const int *forward, void (*on_signal)(int signo, void *arg),
                  void (*on_closed)(void *arg), void *arg)
{
    const int *const lists[N_LISTS] = { always, stop, forward };
    sigset_t none;
    int rc = 0;
    size_t i;

    *signals = (struct signals){ .on_signal = on_signal,
                                 .on_closed = on_closed,
                                 .arg = arg };
    for (i = 0; i < N_LISTS && rc == 0; i++) {
        rc = list_watch(signals, loop, inherited, lists[i]);
    }
    signals->n_open = signals->n_handles;
    (void)sigemptyset(&none);
    (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
    return rc;
}

/*
 * libuv gives a signal its default action back when its handle closes. One
 * that comes after that must not end us with its own status instead of ours.
 */
static void signals_block(const struct signals *signals)
{
    sigset_t set;
    size_t i;

    (void)sigemptyset(&set);
    for (i = 0; i < signals->n_handles; i++) {
        (void)sigaddset(&set, signals->handles[i].signum);
    }
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void signals_stop(struct signals *signals)
{
    size_t i;

    if (signals->stopping) {
        return;
    }
    signals->stopping = true;
    signals_block(signals);
    for (i = 0; i < signals->n_handles; i++) {
        uv_close((uv_handle_t *)&signals->handles[i], handle_closed);
    }
    if (signals->n_handles == 0) {
        signals->on_closed(signals->arg);
    }
}
