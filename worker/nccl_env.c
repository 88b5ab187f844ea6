#include "worker/nccl_env.h"

#include "common/parse.h"
#include "worker/fail.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* NCCL takes up to some 10 MB of it for each pair of ranks. */
#define SHM_ENOUGH_MB 512

static void note(char *text, size_t size, const char *line)
{
    size_t len = strlen(text);

    (void)snprintf(text + len, size - len, "nccl: %s\n", line);
}

static void note_shm(char *text, size_t size)
{
    struct statvfs status;
    char line[160];
    unsigned long long free_mb;

    if (statvfs("/dev/shm", &status) < 0) {
        return;
    }
    free_mb = (unsigned long long)status.f_bavail * status.f_frsize >> 20;
    if (free_mb < SHM_ENOUGH_MB) {
        (void)snprintf(line, sizeof(line),
                       "/dev/shm has %llu MB free: containers want "
                       "--shm-size=1g",
                       free_mb);
        note(text, size, line);
    }
}

void nccl_env_notes(char *text, size_t size)
{
    const char *blocking = getenv("NCCL_COMM_BLOCKING");

    if (getenv("NCCL_COMM_ID") != NULL) {
        note(text, size,
             "NCCL_COMM_ID is set: every communicator of every job there meets "
             "at one address");
    }
    if (blocking != NULL && strcmp(blocking, "1") == 0) {
        note(text, size,
             "NCCL_COMM_BLOCKING=1 is set: a call that hangs cannot be "
             "aborted");
    }
    if (getenv("NCCL_IGNORE_NET_MISMATCH") != NULL) {
        note(text, size,
             "NCCL_IGNORE_NET_MISMATCH is set: it turns an error into a hang");
    }
    if (getenv("NCCL_CONF_FILE") != NULL ||
        access("/etc/nccl.conf", F_OK) == 0) {
        note(text, size,
             "a file of settings is read as well (NCCL_CONF_FILE, "
             "/etc/nccl.conf)");
    }
    note_shm(text, size);
}

bool nccl_env_interface_matches(const char *wanted, const char *name)
{
    bool excludes = wanted[0] == '^';
    bool exact;
    const char *cursor = wanted + excludes;
    const char *item;
    size_t len;

    exact = cursor[0] == '=';
    cursor += exact;
    while (parse_list_next(&cursor, &item, &len)) {
        if (strncmp(item, name, len) == 0 && (!exact || name[len] == '\0')) {
            return !excludes;
        }
    }
    return excludes;
}

int nccl_env_check_interface(struct flaunch_error *error)
{
    const char *wanted = getenv("NCCL_SOCKET_IFNAME");
    struct if_nameindex *list;
    const struct if_nameindex *at;
    bool matches = false;
    char names[300] = "";
    size_t len = 0;

    if (wanted == NULL || wanted[0] == '\0') {
        return 0;
    }
    list = if_nameindex();
    if (list == NULL) {
        return 0; /* NCCL will see for itself */
    }
    for (at = list; at->if_index != 0; at++) {
        matches = matches || nccl_env_interface_matches(wanted, at->if_name);
        if (len + IF_NAMESIZE + 2 < sizeof(names)) {
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
                                    len > 0 ? ", " : "", at->if_name);
        }
    }
    if_freenameindex(list);
    return matches ? 0
                   : fail_set(error, FLAUNCH_NCCL, -ENODEV,
                              "NCCL_SOCKET_IFNAME=%.100s matches no network "
                              "interface of this host: %s",
                              wanted, names);
}
