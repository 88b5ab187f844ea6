#include "common/port_demux.h"

#include <errno.h>
#include <fcntl.h>

bool port_demux_is_agent(const uint8_t *head, size_t len)
{
    return len > 0 && head[0] == 'F'; /* of "FLCH" */
}

int port_demux_hand_over(const struct port_demux *demux, int fd,
                         const uint8_t *head, size_t len)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    if (copy < 0) {
        return -errno;
    }
    demux->take(copy, head, len, demux->arg);
    return 0;
}
