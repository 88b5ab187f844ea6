#include "launcher/worker_users.h"

#include "launcher/proc_table.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whose a process is: the owner of its directory. */
static bool is_of(pid_t pid, uid_t uid)
{
    struct stat info;
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return stat(path, &info) == 0 && info.st_uid == uid;
}

bool worker_users_has(uid_t uid)
{
    const struct proc_skip skip = { 0 };
    struct proc_table table = { 0 };
    bool found = false;
    size_t i;

    if (proc_table_scan(&table) == 0) {
        (void)proc_table_mark(&table, getpid(), &skip);
        for (i = 0; i < table.n && !found; i++) {
            found = table.procs[i].descendant && is_of(table.procs[i].pid, uid);
        }
    }
    proc_table_destroy(&table);
    return found;
}
