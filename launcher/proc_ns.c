#include "launcher/proc_ns.h"

#include "common/io.h"
#include "launcher/proc_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The last number of "NSpid:", which kernels before 4.1 do not tell. */
static pid_t own_number(pid_t pid)
{
    char path[64];
    char text[4096];
    char *at;
    pid_t number = pid;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    if (io_read_text(path, text, sizeof(text)) <= 0) {
        return 0;
    }
    at = strstr(text, "\nNSpid:");
    if (at == NULL) {
        return pid;
    }
    at += strlen("\nNSpid:");
    while (*at == '\t' || *at == ' ') {
        number = (pid_t)strtol(at, &at, 10);
    }
    return number;
}

static const struct proc *find(const struct proc_table *table, pid_t pid)
{
    size_t i;

    for (i = 0; i < table->n; i++) {
        if (table->procs[i].pid == pid) {
            return &table->procs[i];
        }
    }
    return NULL;
}

size_t proc_line_of(pid_t root, pid_t own_pid, pid_t line_out[PROC_LINE_MAX])
{
    const struct proc_skip skip = { 0 };
    struct proc_table table = { 0 };
    const struct proc *at = NULL;
    size_t n = 0;
    size_t i;

    if (proc_table_scan(&table) == 0) {
        (void)proc_table_mark(&table, root, &skip);
        for (i = 0; i < table.n && at == NULL; i++) {
            if (table.procs[i].descendant &&
                own_number(table.procs[i].pid) == own_pid) {
                at = &table.procs[i];
            }
        }
    }
    while (at != NULL && at->pid != root && n < PROC_LINE_MAX) {
        line_out[n++] = at->pid;
        at = find(&table, at->parent);
    }
    proc_table_destroy(&table);
    return n;
}
