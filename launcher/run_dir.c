#include "launcher/run_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

char *run_dir_name(void)
{
    const char *const parents[] = { getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"),
                                    "/tmp" };
    uint64_t number;
    char *path;
    size_t i;

    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number)) {
        return NULL;
    }
    for (i = 0; i < sizeof(parents) / sizeof(parents[0]); i++) {
        if (parents[i] != NULL && parents[i][0] == '/' &&
            access(parents[i], W_OK | X_OK) == 0) {
            return asprintf(&path, "%s/flaunch.%016" PRIx64, parents[i],
                            number) < 0
                       ? NULL
                       : path;
        }
    }
    return NULL;
}

int run_dir_make(const char *path)
{
    return mkdir(path, 0700) == 0 ? 0 : -errno;
}

void run_dir_remove(const char *path)
{
    struct stat status;
    struct dirent *entry;
    DIR *listing = NULL;
    int fd = -1;

    if (path == NULL || rmdir(path) == 0 || errno == ENOENT) {
        return; /* as a rule nothing is in it */
    }
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_uid == geteuid()) {
        listing = fdopendir(fd);
    }
    if (listing == NULL) {
        (void)close(fd);
        return;
    }
    while ((entry = readdir(listing)) != NULL) {
        (void)unlinkat(fd, entry->d_name, 0);
    }
    (void)closedir(listing);
    (void)rmdir(path);
}
