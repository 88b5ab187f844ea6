#include "launcher/run_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char *make_in(const char *parent)
{
    char *path;

    if (parent == NULL || parent[0] != '/' ||
        asprintf(&path, "%s/flaunch.XXXXXX", parent) < 0) {
        return NULL;
    }
    if (mkdtemp(path) == NULL) {
        free(path);
        return NULL;
    }
    return path;
}

char *run_dir_make(void)
{
    const char *const parents[] = { getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"),
                                    "/tmp" };
    char *path = NULL;
    size_t i;

    for (i = 0; i < sizeof(parents) / sizeof(parents[0]) && path == NULL; i++) {
        path = make_in(parents[i]);
    }
    return path;
}

void run_dir_remove(const char *path)
{
    DIR *listing = path != NULL ? opendir(path) : NULL;
    struct dirent *entry;

    if (listing == NULL) {
        return;
    }
    while ((entry = readdir(listing)) != NULL) {
        (void)unlinkat(dirfd(listing), entry->d_name, 0);
    }
    (void)closedir(listing);
    (void)rmdir(path);
}
