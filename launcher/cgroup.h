/*
 * The control groups this process is in, both versions.
 */
#ifndef FLAUNCH_LAUNCHER_CGROUP_H
#define FLAUNCH_LAUNCHER_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A directory, of which the first top_len bytes are the mount point. */
struct cgroup_place {
    char dir[PATH_MAX];
    size_t top_len;
};

/*
 * Where this process is in the hierarchy of a controller of version 1, or,
 * with "", of version 2. root is put before /proc and /sys; "" but in tests.
 */
bool cgroup_find(const char *root, const char *controller,
                 struct cgroup_place *place_out);

/* One step up; false at the mount point. */
bool cgroup_up(struct cgroup_place *place);

/* The number behind name in a file of lines "name number"; -1: none. */
int64_t cgroup_number(const struct cgroup_place *place, const char *file,
                      const char *name);

/*
 * How many processes of our group the kernel has killed for lack of memory;
 * -1 where it does not tell.
 */
int64_t cgroup_oom_kills(const char *root);

#endif
