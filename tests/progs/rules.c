/*
 * What libflaunch promises to leave alone: flaunch_init runs on a second
 * thread; then no signal has a handler, what is open is closed by exec, and
 * nothing was printed.
 *     rules [BACKEND]
 */
#include "worker/flaunch.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FDS_MAX 256

static const char *backend = "none";
static struct flaunch *job;
static struct flaunch_error error;
static int init_rc;

static void *run_init(void *arg)
{
    struct flaunch_options options = FLAUNCH_OPTIONS_INIT;

    (void)arg;
    options.dist_backend = backend;
    init_rc = flaunch_init(&job, &options, &error);
    return NULL;
}

static int fds_kept_over_exec(void)
{
    int fd;
    int n = 0;

    for (fd = 3; fd < FDS_MAX; fd++) {
        int flags = fcntl(fd, F_GETFD);

        n += flags >= 0 && (flags & FD_CLOEXEC) == 0;
    }
    return n;
}

static int handlers(void)
{
    struct sigaction action;
    int signo;
    int n = 0;

    for (signo = 1; signo < 32; signo++) {
        n += sigaction(signo, NULL, &action) == 0 &&
             action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
    }
    return n;
}

int main(int argc, char **argv)
{
    int fds_before = fds_kept_over_exec();
    int handlers_before = handlers();
    pthread_t thread;

    if (argc > 1) {
        backend = argv[1];
    }
    if (pthread_create(&thread, NULL, run_init, NULL) != 0 ||
        pthread_join(thread, NULL) != 0) {
        return 2;
    }
    if (init_rc < 0) {
        (void)fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    /* gloo and NCCL do as they like with descriptors of their own. */
    if ((strcmp(backend, "none") == 0 && fds_kept_over_exec() > fds_before) ||
        handlers() != handlers_before) {
        (void)fprintf(stderr, "descriptors %d, handlers %d\n",
                      fds_kept_over_exec() - fds_before,
                      handlers() - handlers_before);
        return 3;
    }
    flaunch_finalize(job);
    return 0;
}
