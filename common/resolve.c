#include "common/resolve.h"

#include "common/helper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lookup {
    int rc; /* getaddrinfo's */
    struct addrinfo *list;
    char *host;
    char port[8];
};

static int address_look_up(const char *host, const char *port, int flags,
                           struct addrinfo **list_out)
{
    struct addrinfo hints = { .ai_flags = flags | AI_NUMERICSERV,
                              .ai_family = AF_UNSPEC,
                              .ai_socktype = SOCK_STREAM };

    return getaddrinfo(host, port, &hints, list_out);
}

static int lookup_failed(const char *host, int rc, struct err *err)
{
    return err_set(err, -EHOSTUNREACH, "cannot look up %s: %s", host,
                   gai_strerror(rc));
}

int resolve_blocking(const char *host, uint16_t port,
                     struct addrinfo **list_out, struct err *err)
{
    char text[8];
    int rc;

    (void)snprintf(text, sizeof(text), "%u", port);
    rc = address_look_up(host, text, 0, list_out);
    return rc == 0 ? 0 : lookup_failed(host, rc, err);
}

static void lookup_run(void *arg)
{
    struct lookup *lookup = arg;

    lookup->rc = address_look_up(lookup->host, lookup->port, 0, &lookup->list);
}

static void lookup_destroy(void *arg)
{
    struct lookup *lookup = arg;

    if (lookup->rc == 0 && lookup->list != NULL) {
        freeaddrinfo(lookup->list);
    }
    free(lookup->host);
    free(lookup);
}

static struct lookup *lookup_create(const char *host, const char *port)
{
    struct lookup *lookup = calloc(1, sizeof(*lookup));

    if (lookup == NULL) {
        return NULL;
    }
    (void)snprintf(lookup->port, sizeof(lookup->port), "%s", port);
    lookup->host = strdup(host);
    if (lookup->host == NULL) {
        free(lookup);
        return NULL;
    }
    return lookup;
}

static int lookup_finish(struct lookup *lookup, struct helper *helper,
                         const char *host, uint64_t deadline_ms,
                         struct addrinfo **list_out, struct err *err)
{
    if (helper_wait(helper, deadline_ms) < 0) {
        return err_set(err, -ETIMEDOUT, "looking up %s takes too long", host);
    }
    if (lookup->rc != 0) {
        return lookup_failed(host, lookup->rc, err);
    }
    *list_out = lookup->list;
    lookup->list = NULL;
    return 0;
}

int resolve_host(const char *host, uint16_t port, uint64_t deadline_ms,
                 struct addrinfo **list_out, struct err *err)
{
    struct helper *helper;
    struct lookup *lookup;
    char text[8];
    int rc;

    (void)snprintf(text, sizeof(text), "%u", port);
    if (address_look_up(host, text, AI_NUMERICHOST, list_out) == 0) {
        return 0;
    }
    lookup = lookup_create(host, text);
    if (lookup == NULL) {
        return err_sys(err, -ENOMEM, "cannot look up %s", host);
    }
    rc = helper_start(lookup_run, lookup_destroy, lookup, &helper);
    if (rc < 0) {
        lookup_destroy(lookup);
        return err_sys(err, rc, "cannot look up %s", host);
    }
    rc = lookup_finish(lookup, helper, host, deadline_ms, list_out, err);
    helper_release(helper);
    return rc;
}
