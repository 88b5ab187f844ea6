#include "launcher/guard_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1U
#endif

int guard_pair_open(int *agent_fd_out, int *guard_fd_out)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                   fds) < 0) {
        return -errno;
    }
    *agent_fd_out = fds[0];
    *guard_fd_out = fds[1];
    return 0;
}

int guard_pair_flush(int fd, struct buf *out)
{
    while (out->len > 0) {
        size_t len = guard_packet_len(out);

        if (send(fd, out->data, len, MSG_NOSIGNAL) < 0) {
            if (errno == EINTR) {
                continue;
            }
            return errno == EAGAIN || errno == ENOBUFS ? 1 : -errno;
        }
        buf_consume(out, len);
    }
    return 0;
}

/* A file without a name: in memory, on old kernels in a directory for it. */
static int plan_file(void)
{
    const char *dir = getenv("TMPDIR");
    int fd = (int)syscall(SYS_memfd_create, "flaunch-plan", MFD_CLOEXEC);

    if (fd < 0) {
        fd = open(dir != NULL ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC,
                  0600);
    }
    return fd < 0 ? -errno : fd;
}

static int write_all(int fd, const uint8_t *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);

        if (n < 0) {
            if (errno == EINTR) {
                continue;
            }
            return -errno;
        }
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

static int send_with_fd(int fd, const struct buf *message, int passed_fd)
{
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = { { 0 } };
    struct iovec piece = { .iov_base = message->data, .iov_len = message->len };
    struct msghdr header = { .msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof(control.space) };
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&header);

    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(cmsg), &passed_fd, sizeof(int));
    while (sendmsg(fd, &header, MSG_NOSIGNAL) < 0) {
        if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

int guard_pair_send_plan(int fd, const struct guard_plan *plan)
{
    struct guard_msg msg = { .type = GUARD_SPAWN, .count = plan->n_workers };
    struct buf message = { 0 };
    struct buf body = { 0 };
    int file = -1;
    int rc;

    rc = guard_plan_encode(&body, plan);
    if (rc < 0) {
        goto out;
    }
    file = plan_file();
    if (file < 0) {
        rc = file;
        goto out;
    }
    rc = write_all(file, body.data, body.len);
    if (rc < 0) {
        goto out;
    }
    msg.size = body.len;
    rc = guard_msg_encode(&message, &msg);
    if (rc == 0) {
        rc = send_with_fd(fd, &message, file);
    }
out:
    if (file >= 0) {
        (void)close(file);
    }
    buf_destroy(&message);
    buf_destroy(&body);
    return rc;
}

int guard_pair_receive(int fd, struct guard_packet *packet_out)
{
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec piece = { .iov_base = packet_out->data,
                           .iov_len = sizeof(packet_out->data) };
    struct msghdr header = { .msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof(control.space) };
    struct cmsghdr *cmsg;
    ssize_t n;

    do {
        n = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return errno == EAGAIN ? 0 : -errno;
    }
    if (n == 0) {
        return -ECONNRESET;
    }
    packet_out->len = (size_t)n;
    packet_out->plan_fd = -1;
    cmsg = CMSG_FIRSTHDR(&header);
    if (cmsg != NULL && cmsg->cmsg_type == SCM_RIGHTS) {
        memcpy(&packet_out->plan_fd, CMSG_DATA(cmsg), sizeof(int));
    }
    return 1;
}
