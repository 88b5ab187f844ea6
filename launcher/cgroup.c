#include "launcher/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#define CGROUP2_MAGIC 0x63677270

/* Whether the comma list of names holds name; "" is held by "" only. */
static bool list_holds(const char *names, const char *name)
{
    size_t len = strlen(name);
    const char *at = names;

    if (len == 0) {
        return names[0] == '\0';
    }
    while ((at = strstr(at, name)) != NULL) {
        if ((at == names || at[-1] == ',') &&
            (at[len] == ',' || at[len] == '\0')) {
            return true;
        }
        at += len;
    }
    return false;
}

/* "4:cpu,cpuacct:/a/b" or "0::/a/b": the path of controller's hierarchy. */
static bool path_of(const char *root, const char *controller, char *path,
                    size_t size)
{
    char line[2 * PATH_MAX];
    bool found = false;
    FILE *file;

    (void)snprintf(line, sizeof(line), "%s/proc/self/cgroup", root);
    file = fopen(line, "re");
    if (file == NULL) {
        return false;
    }
    while (!found && fgets(line, sizeof(line), file) != NULL) {
        char *names = strchr(line, ':');
        char *where = names != NULL ? strchr(names + 1, ':') : NULL;

        if (where == NULL) {
            continue;
        }
        *where++ = '\0';
        where[strcspn(where, "\n")] = '\0';
        found = list_holds(names + 1, controller);
        if (found) {
            (void)snprintf(path, size, "%s",
                           strcmp(where, "/") == 0 ? "" : where);
        }
    }
    (void)fclose(file);
    return found;
}

/* A line of mountinfo that mounts the hierarchy: "30 23 0:28 ROOT MOUNT rw -
 * cgroup2 cgroup2 rw", version 1 with its controllers among the options. */
static bool is_mount_of(char *line, const char *controller, char *from,
                        char *mount)
{
    char type[32];
    char options[256];
    const char *tail = strstr(line, " - ");

    if (tail == NULL ||
        sscanf(line, "%*s %*s %*s %4095s %4095s", from, mount) != 2 ||
        sscanf(tail, " - %31s %*s %255s", type, options) != 2) {
        return false;
    }
    return controller[0] == '\0'
               ? strcmp(type, "cgroup2") == 0
               : strcmp(type, "cgroup") == 0 && list_holds(options, controller);
}

/*
 * Where most systems have version 2, since to read all mounts takes longer
 * than to start a worker. False where it is somewhere else.
 */
static bool usual_mount(const char *root, const char *controller, char *mount)
{
    static const char *const usual[] = { "/sys/fs/cgroup",
                                         "/sys/fs/cgroup/unified" };
    struct statfs status;
    size_t i;

    for (i = 0; i < 2 && root[0] == '\0' && controller[0] == '\0'; i++) {
        if (statfs(usual[i], &status) == 0 && status.f_type == CGROUP2_MAGIC) {
            (void)strcpy(mount, usual[i]);
            return true;
        }
    }
    return false;
}

bool cgroup_find(const char *root, const char *controller,
                 struct cgroup_place *place_out)
{
    char path[PATH_MAX];
    char line[2 * PATH_MAX];
    char from[PATH_MAX] = "/";
    char mount[PATH_MAX];
    bool found = usual_mount(root, controller, mount);
    FILE *file = NULL;

    if (!found) {
        (void)snprintf(line, sizeof(line), "%s/proc/self/mountinfo", root);
        file = fopen(line, "re");
        if (file == NULL) {
            return false;
        }
    }
    while (!found && fgets(line, sizeof(line), file) != NULL) {
        found = is_mount_of(line, controller, from, mount);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    if (found && path_of(root, controller, path, sizeof(path))) {
        size_t skip = strlen(from);
        int n;

        /* A container may see only a part of the hierarchy. */
        skip =
            strcmp(from, "/") != 0 && strncmp(path, from, skip) == 0 ? skip : 0;
        place_out->top_len = strlen(root) + strlen(mount);
        n = snprintf(place_out->dir, sizeof(place_out->dir), "%s%s%s", root,
                     mount, path + skip);
        return n > 0 && n < (int)sizeof(place_out->dir);
    }
    return false;
}

bool cgroup_up(struct cgroup_place *place)
{
    char *slash = strrchr(place->dir, '/');

    if (strlen(place->dir) <= place->top_len || slash == NULL) {
        return false;
    }
    *slash = '\0';
    if ((size_t)(slash - place->dir) < place->top_len) {
        *slash = '/';
        return false;
    }
    return true;
}

int64_t cgroup_number(const struct cgroup_place *place, const char *file_name,
                      const char *name)
{
    char path[PATH_MAX + 64];
    char line[256];
    int64_t value = -1;
    size_t len = strlen(name);
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", place->dir, file_name);
    file = fopen(path, "re");
    if (file == NULL) {
        return -1;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, name, len) == 0 && line[len] == ' ') {
            value = strtoll(line + len, NULL, 10);
        }
    }
    (void)fclose(file);
    return value;
}

int64_t cgroup_oom_kills(const char *root)
{
    struct cgroup_place place;
    int64_t n = -1;

    if (cgroup_find(root, "", &place)) {
        n = cgroup_number(&place, "memory.events", "oom_kill");
    }
    if (n < 0 && cgroup_find(root, "memory", &place)) {
        n = cgroup_number(&place, "memory.oom_control", "oom_kill");
    }
    return n;
}
