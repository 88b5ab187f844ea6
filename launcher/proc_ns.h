/*
 * Processes by the number that they know themselves by, which in a PID
 * namespace is not ours.
 */
#ifndef FLAUNCH_LAUNCHER_PROC_NS_H
#define FLAUNCH_LAUNCHER_PROC_NS_H

#include <stddef.h>
#include <sys/types.h>

#define PROC_LINE_MAX 64

/*
 * Find the descendant of root that is number own_pid to itself, and its
 * ancestors up to root, as /proc numbers them; the process comes first. Returns
 * how many, 0 where there is none. It reads all of /proc.
 */
size_t proc_line_of(pid_t root, pid_t own_pid, pid_t line_out[PROC_LINE_MAX]);

#endif
