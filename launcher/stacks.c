#include "launcher/stacks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* gdb hangs where a process is in the kernel: each has its own limit. */
static char script[] =
    "for p; do echo \"stack of process $p:\"; "
    "timeout -k 1 10 gdb -p \"$p\" -batch -nx -iex 'set debuginfod enabled "
    "off' -ex 'thread apply all bt 30' 2>&1 | grep -v '^warning\\|^\\[' ; done";

static bool gdb_is_there(void)
{
    const char *path = getenv("PATH");
    const char *at = path != NULL ? path : "";
    char name[4096];

    while (*at != '\0') {
        size_t len = strcspn(at, ":");

        (void)snprintf(name, sizeof(name), "%.*s/gdb", (int)len, at);
        if (access(name, X_OK) == 0) {
            return true;
        }
        at += len + (at[len] == ':');
    }
    return false;
}

static void handle_closed(uv_handle_t *handle)
{
    struct stacks *stacks = handle->data;

    stacks->open_handles--;
}

void stacks_stop(struct stacks *stacks)
{
    if (stacks->stopping || stacks->open_handles == 0) {
        return;
    }
    stacks->stopping = true;
    (void)kill(-stacks->pid, SIGKILL);
    uv_close((uv_handle_t *)&stacks->poll, handle_closed);
    uv_close((uv_handle_t *)&stacks->timer, handle_closed);
    (void)close(stacks->fd);
}

static void finish(struct stacks *stacks)
{
    stacks_stop(stacks);
    stacks->done(stacks->arg);
}

static void text_came(uv_poll_t *poll, int status, int events)
{
    struct stacks *stacks = poll->data;
    char text[4096];
    ssize_t n = read(stacks->fd, text, sizeof(text));

    (void)status;
    (void)events;
    if (n > 0) {
        stacks->text(text, (size_t)n, stacks->arg);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        finish(stacks);
    }
}

static void time_is_up(uv_timer_t *timer)
{
    finish(timer->data);
}

/* In the child: become the shell that runs gdb. */
static void run_script(int fd, const pid_t *pids, size_t n_pids)
{
    static char sh[] = "sh";
    static char option[] = "-c";
    char **argv = calloc(n_pids + 5, sizeof(*argv));
    sigset_t none;
    size_t i;

    if (argv == NULL) {
        _exit(EXIT_FAILURE);
    }
    argv[0] = sh;
    argv[1] = option;
    argv[2] = script;
    argv[3] = sh;
    for (i = 0; i < n_pids; i++) {
        if (asprintf(&argv[4 + i], "%ld", (long)pids[i]) < 0) {
            _exit(EXIT_FAILURE);
        }
    }
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)dup2(fd, STDOUT_FILENO);
    (void)dup2(fd, STDERR_FILENO);
    (void)execv("/bin/sh", argv);
    _exit(EXIT_FAILURE);
}

int stacks_start(struct stacks *stacks, uv_loop_t *loop, const pid_t *pids,
                 size_t n_pids,
                 void (*text)(const char *text, size_t len, void *arg),
                 void (*done)(void *arg), void *arg)
{
    int fds[2];
    int rc;

    *stacks = (struct stacks){ .text = text, .done = done, .arg = arg };
    if (!gdb_is_there()) {
        return -ENOENT;
    }
    if (pipe2(fds, O_CLOEXEC) < 0) {
        return -errno;
    }
    stacks->pid = fork();
    if (stacks->pid == 0) {
        run_script(fds[1], pids, n_pids);
    }
    rc = stacks->pid < 0 ? -errno : 0;
    (void)close(fds[1]);
    if (rc == 0) {
        (void)setpgid(stacks->pid, stacks->pid);
        rc = uv_poll_init(loop, &stacks->poll, fds[0]);
    }
    if (rc < 0) {
        (void)close(fds[0]);
        return rc;
    }
    stacks->fd = fds[0];
    stacks->poll.data = stacks;
    (void)uv_timer_init(loop, &stacks->timer);
    stacks->timer.data = stacks;
    stacks->open_handles = 2;
    (void)uv_timer_start(&stacks->timer, time_is_up, STACKS_LIMIT_MS, 0);
    return uv_poll_start(&stacks->poll, UV_READABLE, text_came);
}
