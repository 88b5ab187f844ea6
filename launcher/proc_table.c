#include "launcher/proc_table.h"

#include "common/parse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Read a small file of /proc whole; "" where it is gone. */
static void file_read(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : 0;

    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0) {
        (void)close(fd);
    }
}

int proc_stat_parse(const char *line, struct proc *proc_out)
{
    const char *open = strchr(line, '(');
    const char *close = strrchr(line, ')'); /* a name may hold brackets */
    struct proc proc = { 0 };
    char *end;
    long pid = strtol(line, &end, 10);
    long parent;
    long group;
    size_t len;

    if (open == NULL || close == NULL || close < open ||
        sscanf(close + 1, " %c %ld %ld", &proc.state, &parent, &group) != 3 ||
        pid <= 0 || pid > INT_MAX || parent < 0 || parent > INT_MAX ||
        group < 0 || group > INT_MAX) {
        return -EINVAL;
    }
    proc.pid = (pid_t)pid;
    proc.parent = (pid_t)parent;
    proc.group = (pid_t)group;
    len = (size_t)(close - open - 1);
    if (len >= sizeof(proc.name)) {
        len = sizeof(proc.name) - 1;
    }
    memcpy(proc.name, open + 1, len);
    *proc_out = proc;
    return 0;
}

static int table_add(struct proc_table *table, const struct proc *proc)
{
    if (table->n == table->cap) {
        size_t cap = table->cap != 0 ? table->cap * 2 : 256;
        struct proc *procs = realloc(table->procs, cap * sizeof(*procs));

        if (procs == NULL) {
            return -ENOMEM;
        }
        table->procs = procs;
        table->cap = cap;
    }
    table->procs[table->n++] = *proc;
    return 0;
}

int proc_table_scan(struct proc_table *table)
{
    struct dirent *entry;
    DIR *dir = opendir("/proc");
    int rc = 0;

    if (dir == NULL) {
        return -errno;
    }
    table->n = 0;
    while (rc == 0 && (entry = readdir(dir)) != NULL) {
        char path[64];
        char line[512];
        struct proc proc;

        if (entry->d_name[0] < '1' || entry->d_name[0] > '9') {
            continue;
        }
        (void)snprintf(path, sizeof(path), "/proc/%.20s/stat", entry->d_name);
        file_read(path, line, sizeof(line));
        if (proc_stat_parse(line, &proc) == 0) {
            rc = table_add(table, &proc);
        }
    }
    (void)closedir(dir);
    return rc;
}

static struct proc *table_find(const struct proc_table *table, pid_t pid)
{
    size_t low = 0;
    size_t high = table->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (table->procs[middle].pid < pid) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < table->n && table->procs[low].pid == pid ? &table->procs[low]
                                                          : NULL;
}

static int by_pid(const void *a, const void *b)
{
    const struct proc *left = a;
    const struct proc *right = b;

    return (left->pid > right->pid) - (left->pid < right->pid);
}

/* The kernel cuts names at 15 bytes, so what a person gives is cut as well. */
static bool is_named(const struct proc *proc, const char *names)
{
    const char *cursor = names;
    const char *item;
    size_t len;

    while (parse_list_next(&cursor, &item, &len)) {
        if (len > 0 && strncmp(proc->name, item, len < 15 ? len : 15) == 0 &&
            (len >= 15 || proc->name[len] == '\0')) {
            return true;
        }
    }
    return false;
}

static bool is_skipped(const struct proc *proc, const struct proc_skip *skip)
{
    size_t i;

    for (i = 0; i < skip->n_pids; i++) {
        if (skip->pids[i] == proc->pid) {
            return true;
        }
    }
    return skip->names != NULL && is_named(proc, skip->names);
}

size_t proc_table_mark(struct proc_table *table, pid_t root,
                       const struct proc_skip *skip)
{
    size_t n_marked = 0;
    size_t i;

    /* /proc lists in order of pid as a rule, but does not promise it. */
    qsort(table->procs, table->n, sizeof(*table->procs), by_pid);
    for (i = 0; i < table->n; i++) {
        struct proc *proc = &table->procs[i];
        const struct proc *up = proc;
        size_t depth = 0;

        /*
         * Walk up to root. A table read while processes come and go may hold
         * a ring of pids used again, so the walk is bounded.
         */
        while (up != NULL && up->parent != root && depth++ < table->n) {
            up = table_find(table, up->parent);
        }
        proc->descendant =
            up != NULL && up->parent == root && !is_skipped(up, skip);
        n_marked += proc->descendant;
    }
    return n_marked;
}

void proc_table_destroy(struct proc_table *table)
{
    free(table->procs);
    *table = (struct proc_table){ 0 };
}

void proc_wchan(pid_t pid, char *text_out, size_t size)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%ld/wchan", (long)pid);
    file_read(path, text_out, size);
}

bool proc_catches(pid_t pid, int signo)
{
    char path[64];
    char text[4096];
    const char *row;

    (void)snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
    file_read(path, text, sizeof(text));
    row = strstr(text, "\nSigCgt:");
    if (row == NULL) {
        return false;
    }
    return (strtoull(row + strlen("\nSigCgt:"), NULL, 16) >> (signo - 1) & 1) !=
           0;
}

bool proc_is_shell(pid_t pid)
{
    static const char *const shells[] = { "sh",  "bash",    "dash",
                                          "zsh", "ksh",     "mksh",
                                          "ash", "busybox", "fish" };
    char path[64];
    char target[512];
    const char *name;
    ssize_t n;
    size_t i;

    (void)snprintf(path, sizeof(path), "/proc/%ld/exe", (long)pid);
    n = readlink(path, target, sizeof(target) - 1);
    if (n < 0) {
        return false;
    }
    target[n] = '\0';
    name = strrchr(target, '/');
    name = name != NULL ? name + 1 : target;
    for (i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (strcmp(name, shells[i]) == 0) {
            return true;
        }
    }
    return false;
}
