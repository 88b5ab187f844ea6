#include "common/sock_owner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct question {
    struct nlmsghdr header;
    struct inet_diag_req_v2 request;
};

/* One message of the kernel's. */
union answer {
    struct nlmsghdr header;
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
    } refused;
    struct {
        struct nlmsghdr header;
        struct inet_diag_msg socket;
    } found;
    char room[1024];
};

int sock_owner_open(void)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    return fd < 0 ? -errno : fd;
}

/* Address and port as the table has them; IPv4 inside IPv6 is IPv4 there. */
static int put_address(const struct sockaddr_storage *name, __be32 *address_out,
                       __be16 *port_out)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (name->ss_family == AF_INET) {
        memcpy(&v4, name, sizeof(v4));
        memcpy(address_out, &v4.sin_addr, 4);
        *port_out = v4.sin_port;
        return AF_INET;
    }
    if (name->ss_family != AF_INET6) {
        return -EAFNOSUPPORT;
    }
    memcpy(&v6, name, sizeof(v6));
    *port_out = v6.sin6_port;
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
        memcpy(address_out, &v6.sin6_addr.s6_addr[12], 4);
        return AF_INET;
    }
    memcpy(address_out, &v6.sin6_addr, 16);
    return AF_INET6;
}

/* Ask for the socket whose own end is the peer's. */
static int question_fill(struct question *question,
                         const struct sockaddr_storage *peer,
                         const struct sockaddr_storage *own)
{
    struct inet_diag_sockid *id = &question->request.id;
    int family;

    *question = (struct question){
        .header = { .nlmsg_len = sizeof(*question),
                    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                    .nlmsg_flags = NLM_F_REQUEST },
        .request = { .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0U },
    };
    family = put_address(peer, id->idiag_src, &id->idiag_sport);
    if (family < 0 || put_address(own, id->idiag_dst, &id->idiag_dport) < 0) {
        return -EAFNOSUPPORT;
    }
    question->request.sdiag_family = (__u8)family;
    id->idiag_cookie[0] = INET_DIAG_NOCOOKIE;
    id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    return 0;
}

int sock_owner_find(int owner_fd, const struct sockaddr_storage *peer,
                    const struct sockaddr_storage *own, uid_t *uid_out)
{
    struct question question;
    union answer answer;
    ssize_t n;
    int rc = question_fill(&question, peer, own);

    if (rc < 0) {
        return rc;
    }
    if (send(owner_fd, &question, sizeof(question), MSG_DONTWAIT) < 0) {
        return -errno;
    }
    /* The kernel answers within send: there is nothing to wait for. */
    n = recv(owner_fd, &answer, sizeof(answer), MSG_DONTWAIT);
    if (n < 0) {
        return -errno;
    }
    if (answer.header.nlmsg_type == NLMSG_ERROR &&
        (size_t)n >= sizeof(answer.refused)) {
        return answer.refused.error.error < 0 ? answer.refused.error.error
                                              : -EPROTO;
    }
    if (answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        (size_t)n < sizeof(answer.found)) {
        return -EPROTO;
    }
    /*
     * A socket that its process has closed has no inode, and its user would be
     * given as root on many kernels.
     */
    if (answer.found.socket.idiag_inode == 0) {
        return -ENOENT;
    }
    *uid_out = answer.found.socket.idiag_uid;
    return 0;
}
