#include "launcher/fds.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static bool range_close(unsigned first, unsigned last)
{
    return first > last || syscall(SYS_close_range, first, last, 0U) == 0;
}

/* Before Linux 5.9: look at what is open. A loop up to the limit could take
 * a second where that is a million. */
static void listed_close(int last, int keep)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;

    if (dir == NULL) {
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        int fd = (int)strtol(entry->d_name, NULL, 10);

        if (fd > last && fd != keep && fd != dirfd(dir)) {
            (void)close(fd);
        }
    }
    (void)closedir(dir);
}

void fds_close_above(int last, int keep)
{
    if (range_close((unsigned)last + 1, (unsigned)keep - 1) &&
        range_close((unsigned)keep + 1, UINT_MAX)) {
        return;
    }
    listed_close(last, keep);
}

int fds_raise_limit(uint64_t need, struct err *err)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
        return err_sys(err, -errno, "cannot read the limit of descriptors");
    }
    if (need > limit.rlim_max) {
        return err_set(err, -EMFILE,
                       "%" PRIu64 " file descriptors are needed and the limit "
                       "is %" PRIu64 ": raise it (ulimit -Hn), or start fewer "
                       "workers",
                       need, (uint64_t)limit.rlim_max);
    }
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0) {
        return err_sys(err, -errno, "cannot raise the limit of descriptors");
    }
    return 0;
}
