#include "launcher/cgroup_leaf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_clone3
#define SYS_clone3 435
#endif
/* clone3(2), since Linux 5.7. */
#define CLONE_INTO_GROUP 0x200000000ULL

/* Groups within groups; more is nobody's launcher in a launcher. */
#define DEPTH_MAX 8

/* struct clone_args of linux/sched.h, which old headers lack. */
struct clone_arguments {
    uint64_t flags;
    uint64_t pidfd;
    uint64_t child_tid;
    uint64_t parent_tid;
    uint64_t exit_signal;
    uint64_t stack;
    uint64_t stack_size;
    uint64_t tls;
    uint64_t set_tid;
    uint64_t set_tid_size;
    uint64_t cgroup;
};

static bool leaf_name(struct cgroup_place *place, pid_t pid)
{
    size_t len;

    if (!cgroup_find("", "", place)) {
        return false;
    }
    len = strlen(place->dir);
    return snprintf(place->dir + len, sizeof(place->dir) - len, "/flaunch.%ld",
                    (long)pid) < (int)(sizeof(place->dir) - len);
}

void cgroup_leaf_make(struct cgroup_leaf *leaf, pid_t pid)
{
    leaf->fd = -1;
    leaf->killed = false;
    if (!leaf_name(&leaf->place, pid) || mkdir(leaf->place.dir, 0755) < 0) {
        leaf->place.dir[0] = '\0';
        return;
    }
    leaf->fd = open(leaf->place.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (leaf->fd < 0 || faccessat(leaf->fd, "cgroup.kill", W_OK, 0) < 0) {
        cgroup_leaf_remove(leaf);
    }
}

pid_t cgroup_leaf_fork(struct cgroup_leaf *leaf)
{
    struct clone_arguments arguments = { .flags = CLONE_INTO_GROUP,
                                         .exit_signal = SIGCHLD };
    pid_t pid;

    if (leaf->fd >= 0) {
        arguments.cgroup = (uint64_t)leaf->fd;
        pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));
        if (pid >= 0 || errno == EAGAIN || errno == ENOMEM) {
            return pid;
        }
        cgroup_leaf_remove(leaf);
    }
    return fork();
}

void cgroup_leaf_kill(struct cgroup_leaf *leaf)
{
    int fd;

    if (leaf->fd < 0) {
        return;
    }
    fd = openat(leaf->fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (write(fd, "1", 1) < 0) {
            /* The scan does it, only later. */
        }
        leaf->killed = true;
        (void)close(fd);
    }
}

/* A group and those below it: a worker that was a flaunch may have left its
 * own. Files in them are the kernel's and go with them. */
static void remove_groups(const char *path, int depth)
{
    DIR *listing;
    struct dirent *entry;

    if (rmdir(path) == 0 || errno == ENOENT || depth == 0) {
        return;
    }
    listing = opendir(path);
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        char *below;

        if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
            asprintf(&below, "%s/%s", path, entry->d_name) >= 0) {
            remove_groups(below, depth - 1);
            free(below);
        }
    }
    if (listing != NULL) {
        (void)closedir(listing);
    }
    (void)rmdir(path);
}

void cgroup_leaf_remove(struct cgroup_leaf *leaf)
{
    if (leaf->fd >= 0) {
        (void)close(leaf->fd);
        leaf->fd = -1;
    }
    if (leaf->place.dir[0] != '\0') {
        remove_groups(leaf->place.dir, DEPTH_MAX);
        leaf->place.dir[0] = '\0';
    }
}

void cgroup_leaf_renew(struct cgroup_leaf *leaf, pid_t pid)
{
    if (leaf->fd >= 0 && leaf->killed) {
        cgroup_leaf_remove(leaf);
        cgroup_leaf_make(leaf, pid);
    }
}

void cgroup_leaf_remove_of(pid_t pid)
{
    struct cgroup_place place;

    if (leaf_name(&place, pid)) {
        remove_groups(place.dir, DEPTH_MAX);
    }
}
