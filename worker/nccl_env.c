#include "worker/nccl_env.h"

#include "common/parse.h"
#include "worker/fail.h"

#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* NCCL takes up to some 10 MB of it for each pair of ranks. */
#define SHM_ENOUGH_MB 512

/* Where ranks differ in one of these, they hang or cut messages. */
static const char *const common_names[] = {
    "NCCL_ALGO",         "NCCL_PROTO",
    "NCCL_BUFFSIZE",     "NCCL_IB_DISABLE",
    "NCCL_NET",          "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",    "NCCL_SHM_DISABLE",
    "NCCL_CUMEM_ENABLE", "NCCL_CUMEM_HOST_ENABLE",
};

struct notes {
    const char *end;
    char *text;
    size_t size;
};

static void note(const struct notes *notes, const char *sentence)
{
    size_t len = strlen(notes->text);

    (void)snprintf(notes->text + len, notes->size - len, "%s%s", sentence,
                   notes->end);
}

static void note_shm(const struct notes *notes)
{
    struct statvfs status;
    unsigned long long free_mb;
    char sentence[160];

    if (statvfs("/dev/shm", &status) < 0) {
        return;
    }
    free_mb = (unsigned long long)status.f_bavail * status.f_frsize >> 20;
    if (free_mb < SHM_ENOUGH_MB) {
        (void)snprintf(sentence, sizeof(sentence),
                       "/dev/shm has %llu MB free: containers want "
                       "--shm-size=1g",
                       free_mb);
        note(notes, sentence);
    }
}

void nccl_env_notes(const char *end, char *text, size_t size)
{
    struct notes notes = { .end = end, .size = size };
    const char *blocking = getenv("NCCL_COMM_BLOCKING");

    notes.text = text;
    if (getenv("NCCL_COMM_ID") != NULL) {
        note(&notes, "NCCL_COMM_ID is set: every communicator of every job "
                     "there meets at one address");
    }
    if (blocking != NULL && strcmp(blocking, "1") == 0) {
        note(&notes, "NCCL_COMM_BLOCKING=1 is set: a call that hangs cannot "
                     "be aborted");
    }
    if (getenv("NCCL_IGNORE_NET_MISMATCH") != NULL) {
        note(&notes, "NCCL_IGNORE_NET_MISMATCH is set: it turns an error into "
                     "a hang");
    }
    if (getenv("NCCL_CONF_FILE") != NULL ||
        access("/etc/nccl.conf", F_OK) == 0) {
        note(&notes, "NCCL reads a file of settings as well (NCCL_CONF_FILE, "
                     "/etc/nccl.conf)");
    }
    note_shm(&notes);
}

void nccl_env_common(char *text, size_t size)
{
    size_t len = 0;
    size_t i;

    text[0] = '\0';
    for (i = 0; i < sizeof(common_names) / sizeof(common_names[0]); i++) {
        const char *value = getenv(common_names[i]);

        if (value != NULL && len < size) {
            len += (size_t)snprintf(text + len, size - len, "%s%s=%.40s",
                                    len > 0 ? " " : "", common_names[i], value);
        }
    }
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

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The lower, the rather NCCL takes it. */
static int interface_order(const char *name)
{
    if (begins(name, "ib")) {
        return 0;
    }
    if (begins(name, "docker")) {
        return 2;
    }
    return begins(name, "lo") || begins(name, "virbr") ? 3 : 1;
}

void nccl_env_interface(char *text_out, size_t size)
{
    const char *wanted = getenv("NCCL_SOCKET_IFNAME");
    const struct ifaddrs *at;
    struct ifaddrs *list;
    char host[NI_MAXHOST];
    int best = INT_MAX;

    text_out[0] = '\0';
    if (getifaddrs(&list) < 0) {
        return;
    }
    for (at = list; at != NULL; at = at->ifa_next) {
        int family = at->ifa_addr != NULL ? at->ifa_addr->sa_family : AF_UNSPEC;
        socklen_t len = family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                           : sizeof(struct sockaddr_in);

        if ((family != AF_INET && family != AF_INET6) ||
            (at->ifa_flags & IFF_UP) == 0 ||
            (wanted != NULL && wanted[0] != '\0' &&
             !nccl_env_interface_matches(wanted, at->ifa_name)) ||
            interface_order(at->ifa_name) >= best ||
            getnameinfo(at->ifa_addr, len, host, sizeof(host), NULL, 0,
                        NI_NUMERICHOST) != 0) {
            continue;
        }
        best = interface_order(at->ifa_name);
        (void)snprintf(text_out, size, "%s %.60s", at->ifa_name, host);
    }
    freeifaddrs(list);
}

bool nccl_env_interface_is_local(const char *text)
{
    const char *address = strchr(text, ' ');

    return interface_order(text) >= 2 || begins(text, "veth") ||
           (address != NULL &&
            (begins(address, " 169.254.") || begins(address, " fe80:") ||
             begins(address, " 127.")));
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
