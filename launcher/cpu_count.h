/*
 * How many CPUs this process may use.
 */
#ifndef FLAUNCH_LAUNCHER_CPU_COUNT_H
#define FLAUNCH_LAUNCHER_CPU_COUNT_H

#include <stddef.h>

/*
 * CPUs of the affinity mask, or fewer where the cgroup has a CPU quota
 * (rounded down); at least 1.
 */
unsigned cpu_count(void);

/*
 * The quota of the process in CPUs (1.5 of them: 1.5), or 0 for none: the
 * smallest from its cgroup upwards, v2 and v1.
 *
 * root  "" or a directory that stands for /, for tests
 */
double cpu_quota(const char *root);

#endif
