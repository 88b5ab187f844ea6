#include "launcher/guard_pair.h"

#include "common/io.h"

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

int guard_pair_open(bool pids, int *agent_fd_out, int *guard_fd_out)
{
    const int on = 1;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                   fds) < 0) {
        return -errno;
    }
    if (pids &&
        setsockopt(fds[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0) {
        int rc = -errno;

        (void)close(fds[0]);
        (void)close(fds[1]);
        return rc;
    }
    *agent_fd_out = fds[0];
    *guard_fd_out = fds[1];
    return 0;
}

int guard_outbox_put(struct guard_outbox *outbox, const struct guard_msg *msg,
                     const int *fds)
{
    size_t len = msg->type == GUARD_SPAWNED ? msg->count * sizeof(*fds) : 0;
    int rc = buf_reserve(&outbox->fds, len);

    if (rc == 0) {
        rc = guard_msg_encode(&outbox->bytes, msg);
    }
    if (rc == 0 && len > 0) {
        rc = buf_append(&outbox->fds, fds, len);
    }
    return rc;
}

void guard_outbox_destroy(struct guard_outbox *outbox)
{
    buf_destroy(&outbox->bytes);
    buf_destroy(&outbox->fds);
}

/* Room for the descriptors and credentials of one message, aligned as it must
 * be. */
union guard_control {
    char space[CMSG_SPACE(GUARD_FDS_MAX * sizeof(int)) +
               CMSG_SPACE(sizeof(struct ucred))];
    struct cmsghdr align;
};

/* Append a control message; at is how much of control is used. */
static void control_add(union guard_control *control, size_t *at, int type,
                        const void *data, size_t len)
{
    struct cmsghdr cmsg = { .cmsg_level = SOL_SOCKET,
                            .cmsg_type = type,
                            .cmsg_len = CMSG_LEN(len) };

    memcpy(control->space + *at, &cmsg, sizeof(cmsg));
    memcpy(control->space + *at + CMSG_LEN(0), data, len);
    *at += CMSG_SPACE(len);
}

/* One packet; pid 0: without credentials. 0 or a negative errno. */
static int send_packet(int fd, const uint8_t *data, size_t len, const void *fds,
                       size_t n_fds, pid_t pid)
{
    struct ucred who = { .pid = pid, .uid = getuid(), .gid = getgid() };
    union guard_control control = { { 0 } };
    struct iovec piece = { .iov_base = (void *)(uintptr_t)data,
                           .iov_len = len };
    struct msghdr header = { .msg_iov = &piece, .msg_iovlen = 1 };
    size_t used = 0;

    if (n_fds > 0) {
        control_add(&control, &used, SCM_RIGHTS, fds, n_fds * sizeof(int));
    }
    if (pid != 0) {
        control_add(&control, &used, SCM_CREDENTIALS, &who, sizeof(who));
    }
    if (used > 0) {
        header.msg_control = control.space;
        header.msg_controllen = used;
    }
    while (sendmsg(fd, &header, MSG_NOSIGNAL) < 0) {
        if (errno == ESRCH && pid != 0) {
            /* Reaped meanwhile: without its pid as others see it. */
            return send_packet(fd, data, len, fds, n_fds, 0);
        }
        if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

int guard_pair_flush(int fd, struct guard_outbox *outbox)
{
    while (outbox->bytes.len > 0) {
        struct guard_msg last;
        size_t len = guard_packet_len(&outbox->bytes, &last);
        size_t n_fds = last.type == GUARD_SPAWNED ? last.count : 0;
        int rc = send_packet(fd, outbox->bytes.data, len, outbox->fds.data,
                             n_fds, outbox->pids ? (pid_t)last.pid : 0);

        if (rc == -EAGAIN || rc == -ENOBUFS) {
            return 1;
        }
        if (rc == -ETOOMANYREFS) {
            return GUARD_PAIR_LATER;
        }
        if (rc < 0) {
            return rc;
        }
        buf_consume(&outbox->bytes, len);
        buf_consume(&outbox->fds, n_fds * sizeof(int));
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
    rc = io_write_all(file, body.data, body.len);
    if (rc < 0) {
        goto out;
    }
    msg.size = body.len;
    rc = guard_msg_encode(&message, &msg);
    if (rc == 0) {
        rc = send_packet(fd, message.data, message.len, &file, 1, 0);
    }
out:
    if (file >= 0) {
        (void)close(file);
    }
    buf_destroy(&message);
    buf_destroy(&body);
    return rc;
}

/* Take over what came beside a packet. */
static void take_control(struct msghdr *header, struct guard_packet *packet)
{
    struct cmsghdr *cmsg;
    struct ucred who;

    packet->n_fds = 0;
    packet->pid = 0;
    for (cmsg = CMSG_FIRSTHDR(header); cmsg != NULL;
         cmsg = CMSG_NXTHDR(header, cmsg)) {
        size_t len = cmsg->cmsg_len - CMSG_LEN(0);

        if (cmsg->cmsg_type == SCM_RIGHTS) {
            packet->n_fds = len / sizeof(int);
            memcpy(packet->fds, CMSG_DATA(cmsg), packet->n_fds * sizeof(int));
        } else if (cmsg->cmsg_type == SCM_CREDENTIALS && len == sizeof(who)) {
            memcpy(&who, CMSG_DATA(cmsg), sizeof(who));
            packet->pid = who.pid > 0 ? (uint32_t)who.pid : 0;
        }
    }
}

int guard_pair_receive(int fd, struct guard_packet *packet_out)
{
    union guard_control control;
    struct iovec piece = { .iov_base = packet_out->data,
                           .iov_len = sizeof(packet_out->data) };
    struct msghdr header = { .msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof(control.space) };
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
    take_control(&header, packet_out);
    return 1;
}

void guard_packet_close(struct guard_packet *packet)
{
    while (packet->n_fds > 0) {
        (void)close(packet->fds[--packet->n_fds]);
    }
}
