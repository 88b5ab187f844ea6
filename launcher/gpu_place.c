#include "launcher/gpu_place.h"

#include "common/io.h"
#include "common/parse.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define DRIVER_DIR "/proc/driver/nvidia/gpus"

struct gpu {
    char address[32]; /* "0000:3b:00.0" */
    char uuid[64];    /* "GPU-..." */
    uint32_t node;
};

/* The value of "Name: value" in text. */
static void find_value(const char *text, const char *name, char *value_out,
                       size_t size)
{
    const char *at = strstr(text, name);

    value_out[0] = '\0';
    if (at != NULL) {
        at += strlen(name);
        at += strspn(at, ": \t");
        (void)snprintf(value_out, size, "%.*s", (int)strcspn(at, " \t\n"), at);
    }
}

/* A machine of one node says -1. */
static uint32_t node_of(const char *root, const char *address)
{
    char path[PATH_MAX];
    char text[32];
    char *end;
    long node = 0;

    (void)snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/numa_node",
                   root, address);
    if (io_read_text(path, text, sizeof(text)) > 0) {
        node = strtol(text, &end, 10);
    }
    return node > 0 ? (uint32_t)node : 0;
}

/* false for what is no GPU of ours: a container's /dev has its own only. */
static bool read_gpu(const char *root, const char *address, struct gpu *gpu)
{
    char path[PATH_MAX];
    char text[1024];
    char minor[16];

    (void)snprintf(path, sizeof(path), "%s" DRIVER_DIR "/%s/information", root,
                   address);
    if (io_read_text(path, text, sizeof(text)) <= 0) {
        return false;
    }
    find_value(text, "Device Minor", minor, sizeof(minor));
    find_value(text, "GPU UUID", gpu->uuid, sizeof(gpu->uuid));
    (void)snprintf(gpu->address, sizeof(gpu->address), "%.31s", address);
    gpu->node = node_of(root, gpu->address);
    (void)snprintf(path, sizeof(path), "%s/dev/nvidia%s", root, minor);
    return minor[0] != '\0' && access(path, F_OK) == 0;
}

static int by_address(const void *a, const void *b)
{
    const struct gpu *one = a;
    const struct gpu *other = b;

    return strcasecmp(one->address, other->address);
}

static uint32_t read_gpus(const char *root, struct gpu *gpus)
{
    char path[PATH_MAX];
    struct dirent *entry;
    uint32_t n = 0;
    DIR *dir;

    (void)snprintf(path, sizeof(path), "%s" DRIVER_DIR, root);
    dir = opendir(path);
    while (dir != NULL && n < GPU_PLACES_MAX &&
           (entry = readdir(dir)) != NULL) {
        n += entry->d_name[0] != '.' && read_gpu(root, entry->d_name, &gpus[n]);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    qsort(gpus, n, sizeof(*gpus), by_address);
    return n;
}

/* Which GPU an entry of CUDA_VISIBLE_DEVICES means; -1: none, as CUDA has it.
 * A part of an identifier will do. */
static int find_gpu(const struct gpu *gpus, uint32_t n, const char *item,
                    size_t len)
{
    char number[16] = "";
    int64_t index;
    uint32_t i;

    if (len > 0 && len < sizeof(number)) {
        memcpy(number, item, len);
        if (parse_int(number, 0, (int64_t)n - 1, &index) == 0) {
            return (int)index;
        }
    }
    for (i = 0; i < n && len > 4; i++) {
        if (strncmp(gpus[i].uuid, item, len) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static int read_visible(const struct gpu *gpus, const char *visible,
                        struct gpu_places *places, struct err *err)
{
    const char *cursor = visible;
    const char *item;
    size_t len;

    while (places->n_visible < GPU_PLACES_MAX &&
           parse_list_next(&cursor, &item, &len)) {
        int gpu = find_gpu(gpus, places->n, item, len);

        if (gpu < 0 && len > 4 && strncmp(item, "MIG-", 4) == 0) {
            return err_set(err, -EINVAL,
                           "--numa-binding cannot tell where %.*s of "
                           "CUDA_VISIBLE_DEVICES is",
                           (int)(len < 64 ? len : 64), item);
        }
        if (gpu < 0) {
            break; /* CUDA ends its list here too */
        }
        places->visible[places->n_visible++] = (uint32_t)gpu;
    }
    return 0;
}

int gpu_places_read(const char *root, const char *visible,
                    struct gpu_places *places_out, struct err *err)
{
    struct gpu gpus[GPU_PLACES_MAX] = { 0 };
    struct gpu_places places = { 0 };
    uint32_t i;
    int rc = 0;

    places.n = read_gpus(root, gpus);
    for (i = 0; i < places.n; i++) {
        places.nodes[i] = gpus[i].node;
        places.visible[i] = i;
    }
    if (visible == NULL) {
        places.n_visible = places.n;
    } else if (places.n > 0) {
        rc = read_visible(gpus, visible, &places, err);
    }
    if (rc == 0) {
        *places_out = places;
    }
    return rc;
}
