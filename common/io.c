#include "common/io.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int io_write_all(int fd, const void *data, size_t len)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = write(fd, at, len);

        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

int io_read_text(const char *path, char *text_out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0) {
        return -errno;
    }
    n = read(fd, text_out, size - 1);
    if (n < 0) {
        n = -errno;
    } else {
        text_out[n] = '\0';
    }
    (void)close(fd);
    return (int)n;
}
