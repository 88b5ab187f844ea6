#include "launcher/gpu_count.h"

#include "common/parse.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static unsigned device_nodes(const char *root)
{
    char path[PATH_MAX];
    struct dirent *entry;
    unsigned n = 0;
    DIR *dir;

    (void)snprintf(path, sizeof(path), "%s/dev", root);
    dir = opendir(path);
    if (dir == NULL) {
        return 0;
    }
    while ((entry = readdir(dir)) != NULL) {
        int64_t number;

        /* nvidiactl, nvidia-uvm and the like are no GPUs. */
        n += strncmp(entry->d_name, "nvidia", 6) == 0 &&
             parse_int(entry->d_name + 6, 0, INT_MAX, &number) == 0;
    }
    (void)closedir(dir);
    return n;
}

/* Whether CUDA would accept one entry of the list. */
static bool is_valid(const char *item, size_t len, unsigned n_devices)
{
    char text[16];
    int64_t index;

    if (len > 4 &&
        (strncmp(item, "GPU-", 4) == 0 || strncmp(item, "MIG-", 4) == 0)) {
        return n_devices > 0;
    }
    if (len == 0 || len >= sizeof(text)) {
        return false;
    }
    memcpy(text, item, len);
    text[len] = '\0';
    return parse_int(text, 0, INT_MAX, &index) == 0 && index < n_devices;
}

unsigned gpu_count(const char *root, const char *visible)
{
    unsigned n_devices = device_nodes(root);
    const char *cursor = visible;
    const char *item;
    unsigned n = 0;
    size_t len;

    if (visible == NULL) {
        return n_devices;
    }
    while (parse_list_next(&cursor, &item, &len) &&
           is_valid(item, len, n_devices)) {
        n++;
    }
    return n;
}
