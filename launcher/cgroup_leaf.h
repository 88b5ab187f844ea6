/*
 * A control group of version 2 for the workers, where one can be made: the
 * kernel ends everything in it at once, whatever it forks meanwhile.
 */
#ifndef FLAUNCH_LAUNCHER_CGROUP_LEAF_H
#define FLAUNCH_LAUNCHER_CGROUP_LEAF_H

#include "launcher/cgroup.h"

#include <sys/types.h>

struct cgroup_leaf {
    struct cgroup_place place; /* dir "": there is none */
    int fd;                    /* of the directory; -1: none */
    bool killed;               /* cgroup.kill was used on it */
};

/*
 * Make a group below ours, named by pid. Without one (no version 2, not
 * allowed, a kernel without cgroup.kill) fd is -1; that is no error.
 */
void cgroup_leaf_make(struct cgroup_leaf *leaf, pid_t pid);

/*
 * As fork(2), the child being born in the group; where that cannot be, fd
 * becomes -1 and the child is an ordinary one. Single-threaded callers only.
 */
pid_t cgroup_leaf_fork(struct cgroup_leaf *leaf);

/* Kill everything in it. */
void cgroup_leaf_kill(struct cgroup_leaf *leaf);

/*
 * Make another one in its place where it was killed, empty as it must be: the
 * kernel (6.18) ends every process that is born into such a group later.
 */
void cgroup_leaf_renew(struct cgroup_leaf *leaf, pid_t pid);

/* Remove it, empty as it must be. */
void cgroup_leaf_remove(struct cgroup_leaf *leaf);

/* The same for one whose maker is dead. */
void cgroup_leaf_remove_of(pid_t pid);

#endif
