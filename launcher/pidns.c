#include "launcher/pidns.h"

#include "common/io.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the child tells its parent: where it failed, 0 where it did not. */
struct setup_result {
    int error; /* a positive errno */
    char step[32];
};

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int rc;

    if (fd < 0) {
        return -errno;
    }
    rc = io_write_all(fd, text, strlen(text));
    (void)close(fd);
    return rc;
}

static int map_one(const char *path, unsigned id)
{
    char text[48];

    (void)snprintf(text, sizeof(text), "%u %u 1", id, id);
    return write_text(path, text);
}

/* Stay who we are. */
static int keep_ids(uid_t uid, gid_t gid)
{
    int rc = map_one("/proc/self/uid_map", uid);

    if (rc == 0) {
        rc = write_text("/proc/self/setgroups", "deny");
    }
    return rc == 0 ? map_one("/proc/self/gid_map", gid) : rc;
}

static struct setup_result child_setup(bool user_namespace, uid_t uid,
                                       gid_t gid)
{
    struct setup_result result = { 0 };

    if (user_namespace) {
        (void)strcpy(result.step, "map user and group");
        result.error = -keep_ids(uid, gid);
    }
    if (result.error == 0 &&
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        (void)strcpy(result.step, "make mounts private");
        result.error = errno;
    }
    if (result.error == 0 &&
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) <
            0) {
        (void)strcpy(result.step, "mount /proc");
        result.error = errno;
    }
    return result;
}

static pid_t clone_like_fork(bool user_namespace)
{
    unsigned long flags = (unsigned long)CLONE_NEWPID | CLONE_NEWNS | SIGCHLD;

    if (user_namespace) {
        flags |= CLONE_NEWUSER;
    }
    return (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
}

/* One try: as pidns_fork. */
static pid_t try_fork(bool user_namespace, struct err *err)
{
    struct setup_result result = { .error = EPIPE };
    uid_t uid = geteuid();
    gid_t gid = getegid();
    int fds[2];
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) < 0) {
        return err_sys(err, -errno, "cannot make a pipe");
    }
    pid = clone_like_fork(user_namespace);
    if (pid == 0) {
        (void)close(fds[0]);
        result = child_setup(user_namespace, uid, gid);
        if (write(fds[1], &result, sizeof(result)) < 0 || result.error != 0) {
            _exit(EXIT_FAILURE);
        }
        (void)close(fds[1]);
        return 0;
    }
    if (pid < 0) {
        pid = err_sys(err, -errno, "--pidns: cannot make a PID namespace");
    }
    (void)close(fds[1]);
    if (pid > 0 &&
        (read(fds[0], &result, sizeof(result)) < 0 || result.error != 0)) {
        (void)waitpid(pid, NULL, 0);
        pid = err_sys(err, -result.error,
                      "--pidns: cannot %s in a PID namespace", result.step);
    }
    (void)close(fds[0]);
    return pid;
}

pid_t pidns_fork(struct err *err)
{
    pid_t pid = -EPERM;

    if (geteuid() == 0) {
        pid = try_fork(false, err);
    }
    return pid == -EPERM ? try_fork(true, err) : pid;
}
