#include "launcher/port_holder.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TCP_LISTEN_STATE 0x0A /* as /proc/net/tcp shows it */
#define NAME_SIZE 288         /* "/proc/", a name, "/fd" */

/* The inode of the socket that listens on port, or 0. */
static uint64_t listener_inode(const char *table, uint16_t port)
{
    FILE *file = fopen(table, "re");
    uint64_t found = 0;
    char line[512];

    if (file == NULL) {
        return 0;
    }
    while (found == 0 && fgets(line, sizeof(line), file) != NULL) {
        unsigned local_port;
        unsigned state;
        uint64_t inode;

        if (sscanf(line,
                   " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*s %*s "
                   "%" SCNu64,
                   &local_port, &state, &inode) == 3 &&
            local_port == port && state == TCP_LISTEN_STATE) {
            found = inode;
        }
    }
    (void)fclose(file);
    return found;
}

/* Whether the process in /proc/NAME has the socket open. */
static bool holds_socket(const char *name, uint64_t inode)
{
    char wanted[64];
    char path[NAME_SIZE];
    char target[64];
    struct dirent *entry;
    bool found = false;
    DIR *dir;

    (void)snprintf(wanted, sizeof(wanted), "socket:[%" PRIu64 "]", inode);
    (void)snprintf(path, sizeof(path), "/proc/%.255s/fd", name);
    dir = opendir(path);
    if (dir == NULL) {
        return false;
    }
    while (!found && (entry = readdir(dir)) != NULL) {
        ssize_t n =
            readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

        if (n > 0) {
            target[n] = '\0';
            found = strcmp(target, wanted) == 0;
        }
    }
    (void)closedir(dir);
    return found;
}

/* The command line with blanks between arguments, control bytes left out. */
static void command_read(const char *name, char *text, size_t size)
{
    char path[NAME_SIZE];
    ssize_t n = 0;
    ssize_t i;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%.255s/cmdline", name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, text, size - 1);
        (void)close(fd);
    }
    for (i = 0; i < n; i++) {
        if ((unsigned char)text[i] < ' ') {
            text[i] = ' ';
        }
    }
    while (n > 0 && text[n - 1] == ' ') {
        n--;
    }
    text[n > 0 ? n : 0] = '\0';
}

void port_holder_describe(uint16_t port, char *text_out, size_t size)
{
    uint64_t inode = listener_inode("/proc/net/tcp", port);
    struct dirent *entry;
    char command[128];
    DIR *dir;

    if (inode == 0) {
        inode = listener_inode("/proc/net/tcp6", port);
    }
    if (inode == 0) {
        (void)snprintf(text_out, size, "an unknown process");
        return;
    }
    (void)snprintf(text_out, size, "a process that is not visible to us");
    dir = opendir("/proc");
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
            !holds_socket(entry->d_name, inode)) {
            continue;
        }
        command_read(entry->d_name, command, sizeof(command));
        (void)snprintf(text_out, size, "pid %s (%s)", entry->d_name, command);
        break;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}
