#include "worker/job_address.h"

#include "common/parse.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static const char magic[] = "flaunch1";

int job_address_encode(const struct job_address *address, char *text_out,
                       size_t size)
{
    size_t len;
    size_t i;
    int n = snprintf(text_out, size, "%s,%s,%u", magic, address->token,
                     address->port);

    len = n < 0 ? size : (size_t)n;
    for (i = 0; i < address->n_hosts && len < size; i++) {
        len += (size_t)snprintf(text_out + len, size - len, ",%s",
                                address->hosts[i]);
    }
    if (len + 3 > size) {
        return -EMSGSIZE;
    }
    memcpy(text_out + len, ",.", 3);
    return 0;
}

static void add_host(struct job_address *address, const char *host)
{
    (void)snprintf(address->hosts[address->n_hosts++], JOB_ADDRESS_MAX, "%.63s",
                   host);
}

/* The next part, copied: whether it is there, not empty, and fits. */
static bool next_part(const char **cursor, char *text_out, size_t size)
{
    const char *item;
    size_t len;

    if (!parse_list_next(cursor, &item, &len) || len == 0 || len >= size) {
        return false;
    }
    memcpy(text_out, item, len);
    text_out[len] = '\0';
    return true;
}

int job_address_decode(const char *text, struct job_address *address_out)
{
    struct job_address address = { 0 };
    char part[JOB_TOKEN_MAX];
    int64_t port;

    if (!next_part(&text, part, sizeof(part)) || strcmp(part, magic) != 0 ||
        !next_part(&text, address.token, sizeof(address.token)) ||
        !next_part(&text, part, sizeof(part)) ||
        parse_int(part, 1, 65535, &port) < 0) {
        return -EPROTO;
    }
    address.port = (uint16_t)port;
    while (next_part(&text, part, JOB_ADDRESS_MAX)) {
        if (strcmp(part, ".") == 0) {
            *address_out = address;
            return text == NULL && address.n_hosts > 0 ? 0 : -EPROTO;
        }
        if (address.n_hosts == JOB_ADDRESSES_MAX) {
            return -EPROTO;
        }
        add_host(&address, part);
    }
    return -EPROTO;
}

static bool others_may_reach(const struct ifaddrs *interface)
{
    const struct sockaddr *address = interface->ifa_addr;

    if (address == NULL || (interface->ifa_flags & IFF_UP) == 0 ||
        (interface->ifa_flags & IFF_LOOPBACK) != 0) {
        return false;
    }
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 =
            (const struct sockaddr_in6 *)(const void *)address;

        return !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);
    }
    return address->sa_family == AF_INET;
}

static void add_interfaces(struct job_address *address)
{
    const struct ifaddrs *at;
    struct ifaddrs *list;
    char host[NI_MAXHOST];

    if (getifaddrs(&list) < 0) {
        return;
    }
    for (at = list; at != NULL && address->n_hosts < JOB_ADDRESSES_MAX - 1;
         at = at->ifa_next) {
        socklen_t len =
            at->ifa_addr != NULL && at->ifa_addr->sa_family == AF_INET6
                ? sizeof(struct sockaddr_in6)
                : sizeof(struct sockaddr_in);

        if (others_may_reach(at) &&
            getnameinfo(at->ifa_addr, len, host, sizeof(host), NULL, 0,
                        NI_NUMERICHOST) == 0 &&
            strlen(host) < JOB_ADDRESS_MAX) {
            add_host(address, host);
        }
    }
    freeifaddrs(list);
}

void job_address_find(struct job_address *address, bool one_node)
{
    address->n_hosts = 0;
    if (!one_node) {
        add_interfaces(address);
    }
    add_host(address, "127.0.0.1");
}
