#include "worker/ancestors.h"

#include "common/io.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LEVELS_MAX 12

/* Name and parent of a process: the parent, or 0 where it cannot be read. */
static int read_process(int pid, char name[32])
{
    char path[32];
    char text[512];
    const char *parent;
    int ppid = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
    if (io_read_text(path, text, sizeof(text)) < 0 ||
        sscanf(text, "Name: %31[^\n]", name) != 1) {
        name[0] = '\0';
        return 0;
    }
    parent = strstr(text, "\nPPid:");
    if (parent == NULL || sscanf(parent, "\nPPid: %d", &ppid) != 1) {
        return 0;
    }
    return ppid;
}

void ancestors_list(char *text_out, size_t size)
{
    int pid = (int)getppid();
    size_t len = 0;
    int level;

    text_out[0] = '\0';
    for (level = 0; level < LEVELS_MAX && pid > 1; level++) {
        char name[32];

        pid = read_process(pid, name);
        if (name[0] == '\0' || len + sizeof(name) + 5 > size) {
            return;
        }
        len += (size_t)snprintf(text_out + len, size - len, "%s%s",
                                len > 0 ? " <- " : "", name);
    }
}
