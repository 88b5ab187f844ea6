#include "launcher/cpu_count.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CPUS_MAX 65536 /* of one mask; far beyond any machine */

static unsigned affinity_count(void)
{
    size_t room;

    /* The kernel says EINVAL while the set is smaller than its own. */
    for (room = 1024; room <= CPUS_MAX; room *= 2) {
        size_t size = CPU_ALLOC_SIZE(room);
        cpu_set_t *set = CPU_ALLOC(room);
        int n = 0;

        if (set == NULL) {
            break;
        }
        if (sched_getaffinity(0, size, set) == 0) {
            n = CPU_COUNT_S(size, set);
        }
        CPU_FREE(set);
        if (n > 0) {
            return (unsigned)n;
        }
        if (errno != EINVAL) {
            break;
        }
    }
    return 1;
}

/* The first line of a file, formatted path; false where there is none. */
static bool line_read(char *line, size_t size, const char *root,
                      const char *dir, const char *name)
{
    char path[PATH_MAX];
    FILE *file;
    bool ok;

    if (snprintf(path, sizeof(path), "%s%s/%s", root, dir, name) >=
        (int)sizeof(path)) {
        return false;
    }
    file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    ok = fgets(line, (int)size, file) != NULL;
    (void)fclose(file);
    return ok;
}

static double quota_v2(const char *root, const char *dir)
{
    char line[128];
    double quota;
    double period;

    /* "max 100000" or "150000 100000" */
    if (!line_read(line, sizeof(line), root, dir, "cpu.max") ||
        sscanf(line, "%lf %lf", &quota, &period) != 2 || period <= 0) {
        return 0;
    }
    return quota / period;
}

static double quota_v1(const char *root, const char *dir)
{
    char line[128];
    double quota;
    double period;

    if (!line_read(line, sizeof(line), root, dir, "cpu.cfs_quota_us")) {
        return 0;
    }
    quota = strtod(line, NULL);
    if (!line_read(line, sizeof(line), root, dir, "cpu.cfs_period_us")) {
        return 0;
    }
    period = strtod(line, NULL);
    return quota > 0 && period > 0 ? quota / period : 0;
}

static double smaller(double a, double b)
{
    if (a <= 0) {
        return b;
    }
    return b <= 0 || a < b ? a : b;
}

/* The smallest quota of mount/path and the directories above it. */
static double quota_upwards(const char *root, const char *mount,
                            const char *path,
                            double (*read_quota)(const char *, const char *))
{
    char dir[PATH_MAX];
    size_t mount_len = strlen(mount);
    double quota = 0;

    if (snprintf(dir, sizeof(dir), "%s%s", mount, path) >= (int)sizeof(dir)) {
        return 0;
    }
    for (;;) {
        char *slash;

        quota = smaller(quota, read_quota(root, dir));
        slash = strrchr(dir, '/');
        if (slash == NULL || (size_t)(slash - dir) < mount_len) {
            return smaller(quota, read_quota(root, mount));
        }
        *slash = '\0';
    }
}

/*
 * The path of this process in the hierarchy of controller ("" for v2):
 * "4:cpu,cpuacct:/a/b" or "0::/a/b".
 */
static bool cgroup_path(const char *root, const char *controller, char *path,
                        size_t size)
{
    char name[PATH_MAX];
    char line[PATH_MAX];
    bool found = false;
    FILE *file;

    (void)snprintf(name, sizeof(name), "%s/proc/self/cgroup", root);
    file = fopen(name, "re");
    if (file == NULL) {
        return false;
    }
    while (!found && fgets(line, sizeof(line), file) != NULL) {
        char *names = strchr(line, ':');
        char *where = names != NULL ? strchr(names + 1, ':') : NULL;
        char *word;
        char *rest;

        if (where == NULL) {
            continue;
        }
        *where++ = '\0';
        where[strcspn(where, "\n")] = '\0';
        names++;
        if (controller[0] == '\0') {
            found = names[0] == '\0';
        }
        for (word = strtok_r(names, ",", &rest); word != NULL && !found;
             word = strtok_r(NULL, ",", &rest)) {
            found = controller[0] != '\0' && strcmp(word, controller) == 0;
        }
        if (found) {
            (void)snprintf(path, size, "%s",
                           strcmp(where, "/") == 0 ? "" : where);
        }
    }
    (void)fclose(file);
    return found;
}

/*
 * Mount points of cgroup trees: "... - cgroup2 cgroup2 rw" and, for v1, the
 * one whose options name the cpu controller.
 */
static double quota_of_mount(const char *root, char *line)
{
    char path[PATH_MAX];
    char mount[PATH_MAX];
    char type[32];
    char options[256];
    const char *tail = strstr(line, " - ");

    if (tail == NULL || sscanf(line, "%*s %*s %*s %*s %4095s", mount) != 1 ||
        sscanf(tail, " - %31s %*s %255s", type, options) != 2) {
        return 0;
    }
    if (strcmp(type, "cgroup2") == 0 &&
        cgroup_path(root, "", path, sizeof(path))) {
        return quota_upwards(root, mount, path, quota_v2);
    }
    if (strcmp(type, "cgroup") == 0 && strstr(options, "cpu") != NULL &&
        cgroup_path(root, "cpu", path, sizeof(path))) {
        return quota_upwards(root, mount, path, quota_v1);
    }
    return 0;
}

double cpu_quota(const char *root)
{
    char name[PATH_MAX];
    char line[2 * PATH_MAX];
    double quota = 0;
    FILE *file;

    (void)snprintf(name, sizeof(name), "%s/proc/self/mountinfo", root);
    file = fopen(name, "re");
    if (file == NULL) {
        return 0;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        quota = smaller(quota, quota_of_mount(root, line));
    }
    (void)fclose(file);
    return quota;
}

unsigned cpu_count(void)
{
    unsigned n = affinity_count();
    double quota = cpu_quota("");

    if (quota > 0 && quota < (double)n) {
        n = quota < 1 ? 1 : (unsigned)quota;
    }
    return n;
}
