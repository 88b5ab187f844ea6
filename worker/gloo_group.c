#include "worker/gloo_group.h"

#include "common/clock.h"
#include "common/dynlib.h"
#include "worker/fail.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* How long one collective may take: PyTorch's default for gloo. */
#define COLLECTIVE_MS (30ULL * 60 * 1000)

/* The store as gloo sees it: keys below a prefix, one deadline for all. */
struct kv {
    struct store_client *client;
    const char *prefix;
    uint64_t deadline_ms;
};

static void key_name(const struct kv *kv, const char *key, char *name,
                     size_t size)
{
    (void)snprintf(name, size, "%s/%s", kv->prefix, key);
}

static int kv_set(void *arg, const char *key, const void *data, size_t len)
{
    const struct kv *kv = arg;
    struct bytes value = { .data = data, .len = len };
    char name[512];

    key_name(kv, key, name, sizeof(name));
    return store_client_set(kv->client, name, value, kv->deadline_ms, NULL);
}

static int kv_get(void *arg, const char *key, uint64_t timeout_ms,
                  void **data_out, size_t *len_out)
{
    const struct kv *kv = arg;
    struct buf value = { 0 };
    char name[512];
    int rc;

    key_name(kv, key, name, sizeof(name));
    rc = store_client_get(
        kv->client, name,
        clock_earlier(clock_deadline(timeout_ms), kv->deadline_ms), &value,
        NULL);
    if (rc == 0) {
        *data_out = value.data;
        *len_out = value.len;
    }
    return rc;
}

static int kv_wait(void *arg, const char *key, uint64_t timeout_ms)
{
    const struct kv *kv = arg;
    char name[512];

    key_name(kv, key, name, sizeof(name));
    return store_client_wait(
        kv->client, name,
        clock_earlier(clock_deadline(timeout_ms), kv->deadline_ms), NULL);
}

int gloo_group_load(struct gloo_group *gloo, struct flaunch_error *error)
{
    static const char *const names[] = { "libflaunch_gloo.so.0",
                                         "libflaunch_gloo.so", NULL };
    const struct gloo_shim *(*get_shim)(void) = NULL;
    const struct dynlib_symbol symbols[] = {
        { "flaunch_gloo_shim", (void **)&get_shim, false },
        { NULL, NULL, false },
    };
    void *library;
    char why[256];
    int rc = dynlib_load(names, symbols, &library, why, sizeof(why));

    if (rc == 0) {
        gloo->shim = get_shim();
        if (gloo->shim->abi != GLOO_SHIM_ABI) {
            (void)snprintf(why, sizeof(why),
                           "libflaunch_gloo.so belongs to another version");
            rc = -ENOENT;
        }
    }
    if (rc < 0) {
        gloo->shim = NULL;
        return fail_set(error, FLAUNCH_GLOO, rc,
                        "the gloo backend cannot be used (%s); install gloo "
                        "(libgloo-dev) and build flaunch again, or put its "
                        "directory into LD_LIBRARY_PATH",
                        why);
    }
    return 0;
}

/* The address of our end of the store's connection: peers reach us there. */
static int own_address(int fd, char *address, size_t size)
{
    struct sockaddr_storage name;
    socklen_t len = sizeof(name);

    if (getsockname(fd, (struct sockaddr *)&name, &len) < 0) {
        return -errno;
    }
    return getnameinfo((struct sockaddr *)&name, len, address, (socklen_t)size,
                       NULL, 0, NI_NUMERICHOST) == 0
               ? 0
               : -EADDRNOTAVAIL;
}

int gloo_group_open(struct gloo_group *gloo, int rank, int world_size,
                    struct store_client *client, const char *reached,
                    const char *prefix, uint64_t deadline_ms,
                    struct flaunch_error *error)
{
    struct kv kv = { client, prefix, deadline_ms };
    const struct gloo_kv shim_kv = { kv_set, kv_get, kv_wait, &kv };
    char address[NI_MAXHOST];
    int left_ms = clock_poll_ms(deadline_ms);
    struct gloo_request request = {
        .rank = rank,
        .world_size = world_size,
        .address = address,
        .open_ms = left_ms > 0 ? (uint64_t)left_ms : 1,
        .collective_ms = COLLECTIVE_MS,
    };
    char why[512];
    int rc = own_address(client->fd, address, sizeof(address));

    if (rc < 0) {
        return fail_set(error, FLAUNCH_SYSTEM, rc,
                        "cannot tell this host's own address");
    }
    if (strncmp(address, "127.", 4) == 0 && reached[0] != '\0') {
        (void)snprintf(address, sizeof(address), "%s", reached);
    }
    rc = gloo->shim->open(&gloo->group, &request, &shim_kv, why, sizeof(why));
    if (rc < 0) {
        return fail_set(error, FLAUNCH_GLOO, rc,
                        "gloo could not connect rank %d to the others: %s",
                        rank, why);
    }
    return 0;
}

void gloo_group_close(struct gloo_group *gloo)
{
    if (gloo->group != NULL) {
        gloo->shim->close(gloo->group);
    }
    gloo->group = NULL;
}
