/*
 * The processes of this machine as /proc shows them, and who descends from
 * whom.
 */
#ifndef FLAUNCH_LAUNCHER_PROC_TABLE_H
#define FLAUNCH_LAUNCHER_PROC_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct proc {
    pid_t pid;
    pid_t parent;
    pid_t group;
    char state; /* as in proc(5): R, S, D, T, Z ... */
    char name[32];
    bool descendant; /* set by proc_table_mark */
};

/* Zero-initialise; memory is kept from scan to scan. */
struct proc_table {
    struct proc *procs;
    size_t n;
    size_t cap;
};

/*
 * Read one line of /proc/PID/stat; the name may hold any character. 0 or
 * -EINVAL.
 */
int proc_stat_parse(const char *line, struct proc *proc_out);

/* Scan /proc: 0 or a negative errno. What ends meanwhile is left out. */
int proc_table_scan(struct proc_table *table);

/* Children that are left out, by pid and by name ("a,b"; NULL: none). */
struct proc_skip {
    const pid_t *pids;
    size_t n_pids;
    const char *names;
};

/*
 * Mark all descendants of root, but for the children in skip and what descends
 * from those. Returns how many are marked, zombies included.
 */
size_t proc_table_mark(struct proc_table *table, pid_t root,
                       const struct proc_skip *skip);

void proc_table_destroy(struct proc_table *table);

/* The kernel function a process waits in; "" where that is not told. */
void proc_wchan(pid_t pid, char *text_out, size_t size);

/* Whether a process has a handler of its own for a signal. */
bool proc_catches(pid_t pid, int signo);

/* Whether a process runs a well-known shell, by its executable's name. */
bool proc_is_shell(pid_t pid);

#endif
