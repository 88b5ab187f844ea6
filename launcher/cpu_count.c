#include "launcher/cpu_count.h"

#include "launcher/cgroup.h"

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

/* The first line of a file in a directory; false where there is none. */
static bool line_read(char *line, size_t size, const char *dir,
                      const char *name)
{
    char path[PATH_MAX + 64];
    FILE *file;
    bool ok;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    ok = fgets(line, (int)size, file) != NULL;
    (void)fclose(file);
    return ok;
}

static double quota_v2(const char *dir)
{
    char line[128];
    double quota;
    double period;

    /* "max 100000" or "150000 100000" */
    if (!line_read(line, sizeof(line), dir, "cpu.max") ||
        sscanf(line, "%lf %lf", &quota, &period) != 2 || period <= 0) {
        return 0;
    }
    return quota / period;
}

static double quota_v1(const char *dir)
{
    char line[128];
    double quota;
    double period;

    if (!line_read(line, sizeof(line), dir, "cpu.cfs_quota_us")) {
        return 0;
    }
    quota = strtod(line, NULL);
    if (!line_read(line, sizeof(line), dir, "cpu.cfs_period_us")) {
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

/* The smallest quota of our group and of those above it. */
static double quota_upwards(const char *root, const char *controller,
                            double (*read_quota)(const char *))
{
    struct cgroup_place place;
    double quota = 0;

    if (cgroup_find(root, controller, &place)) {
        do {
            quota = smaller(quota, read_quota(place.dir));
        } while (cgroup_up(&place));
    }
    return quota;
}

double cpu_quota(const char *root)
{
    return smaller(quota_upwards(root, "", quota_v2),
                   quota_upwards(root, "cpu", quota_v1));
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
