#include "worker/job_store.h"

#include "common/clock.h"
#include "common/net.h"
#include "common/store_host.h"
#include "worker/fail.h"
#include "worker/job_address.h"
#include "worker/token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_MS 5
/* One try of an address that may be nobody's; a packet filter stays silent. */
#define TRY_MS 2000
#define PAUSE_FIRST_MS 20
#define PAUSE_MAX_MS 500
/* Taking leave of a channel that may have stopped answering. */
#define CLOSE_MS 5000

static const char address_key[] = "flaunch-address";
/* How many have left a store of rank 0's, which serves one job; and how many
 * have left it after a bad verdict, while others may still be on their way. */
static const char left_key[] = "flaunch/left";
static const char told_key[] = "flaunch/told";

static int fail(struct flaunch_error *error, const struct detected *detected,
                const struct err *err)
{
    return fail_set(error, FLAUNCH_STORE, err->code,
                    "rank %d cannot reach the store: %s", detected->rank,
                    err->text);
}

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0;
}

static bool is_one_node(const struct detected *detected)
{
    return detected->local_world_size == detected->world_size;
}

/* Serve on a port; port_out says which, where the kernel chooses. */
static int serve(struct job_store *store, enum net_scope scope, uint16_t port,
                 uint16_t *port_out, struct err *err)
{
    const struct net_where where = { .scope = scope, .port = port };
    struct store_setup setup = { .conf = STORE_CONF_DEFAULT };
    int rc = net_listeners_open(&where, 1, &setup.listeners, err);

    if (rc < 0) {
        return rc;
    }
    *port_out = setup.listeners.port;
    return store_host_start(&setup, &store->host, err);
}

/* The key that tells this job's store from another's. */
static void token_key(const char *token, char *key, size_t size)
{
    (void)snprintf(key, size, "flaunch/token/%s", token);
}

/* Rank 0: reach the store just served, and leave the token in it. */
static int sign(struct job_store *store, uint16_t port, const char *token,
                uint64_t deadline_ms, struct err *err)
{
    struct bytes nothing = { 0 };
    int64_t n;
    char key[160];
    int rc = store_client_connect(&store->client, "127.0.0.1", port,
                                  deadline_ms, err);

    token_key(token, key, sizeof(key));
    if (rc == 0) {
        rc = store_client_set(&store->client, key, nothing, deadline_ms, err);
    }
    /* Its answer says that the key before it is there. */
    return rc == 0 ? store_client_add(&store->client, "flaunch/n", 0,
                                      deadline_ms, &n, err)
                   : rc;
}

/*
 * Whether some rank has already left a job in this store: then it serves an
 * earlier job of these very processes, and rank 0 has yet to end it. A new job
 * nobody leaves like this before all have come.
 */
static int check_unused(struct job_store *store, uint64_t deadline_ms,
                        struct err *err)
{
    bool used = false;
    int rc =
        store_client_check(&store->client, left_key, deadline_ms, &used, err);

    return rc == 0 && used
               ? err_set(err, -EALREADY, "store %s port %u is an earlier job's",
                         store->client.host, store->client.port)
               : rc;
}

/* Try one address: 0 where this job's store is there. */
static int try_address(struct job_store *store, const char *host, uint16_t port,
                       const char *token, uint64_t deadline_ms, struct err *err)
{
    uint64_t try_ms = clock_earlier(clock_deadline(TRY_MS), deadline_ms);
    bool ours = false;
    char key[160];
    int rc;

    rc = store_client_try(&store->client, host, port, try_ms, err);
    if (rc < 0) {
        return rc;
    }
    token_key(token, key, sizeof(key));
    rc = store_client_check(&store->client, key, try_ms, &ours, err);
    if (rc == 0 && !ours) {
        rc = err_set(err, -EXDEV, "store %s port %u is another job's", host,
                     port);
    }
    if (rc == 0) {
        rc = check_unused(store, try_ms, err);
    }
    if (rc < 0) {
        store_client_close(&store->client);
    }
    return rc;
}

/* Every address once. */
static int try_all(struct job_store *store, const struct job_address *address,
                   uint64_t deadline_ms, struct err *err)
{
    int rc = -EHOSTUNREACH;
    size_t i;

    for (i = 0; i < address->n_hosts && rc < 0; i++) {
        rc = try_address(store, address->hosts[i], address->port,
                         address->token, deadline_ms, err);
    }
    return rc;
}

/* Whether there is time for another round; sleeps a growing while. */
static bool wait_a_little(uint64_t *pause_ms, uint64_t deadline_ms)
{
    if (clock_deadline(*pause_ms) >= deadline_ms) {
        return false;
    }
    clock_sleep_ms(*pause_ms);
    *pause_ms = *pause_ms * 2 < PAUSE_MAX_MS ? *pause_ms * 2 : PAUSE_MAX_MS;
    return true;
}

/* --- an address that all know ------------------------------------------- */

/* Connect; past a store that rank 0 still serves for an earlier job. */
static int connect_new(struct job_store *store, const struct detected *detected,
                       uint64_t deadline_ms, struct err *err)
{
    bool old_is_possible =
        detected->channel == CHANNEL_ADDRESS && detected->rank != 0;
    uint64_t pause_ms = PAUSE_FIRST_MS;
    int rc;

    do {
        rc = store_client_connect(&store->client, detected->host,
                                  detected->port, deadline_ms, err);
        if (rc < 0 || !old_is_possible) {
            return rc;
        }
        rc = check_unused(store, deadline_ms, err);
        if (rc == 0) {
            return 0;
        }
        store_client_close(&store->client);
    } while (wait_a_little(&pause_ms, deadline_ms));
    return rc;
}

static int open_address(struct job_store *store,
                        const struct detected *detected, uint64_t deadline_ms,
                        struct flaunch_error *error)
{
    enum net_scope scope = is_loopback(detected->host) ? NET_LOOPBACK : NET_ALL;
    struct err err;
    uint16_t port;

    if (detected->channel == CHANNEL_ADDRESS && detected->rank == 0) {
        if (serve(store, scope, detected->port, &port, &err) < 0) {
            return fail_set(error, FLAUNCH_STORE, err.code,
                            "rank 0 cannot serve the store at %s port %u "
                            "(MASTER_ADDR and MASTER_PORT, or dist_url): %s",
                            detected->host, detected->port, err.text);
        }
    }
    if (connect_new(store, detected, deadline_ms, &err) < 0) {
        return fail(error, detected, &err);
    }
    return 0;
}

/* --- Slurm: ports that follow from the step ----------------------------- */

static int serve_slurm(struct job_store *store, const struct detected *detected,
                       uint64_t deadline_ms, struct err *err)
{
    enum net_scope scope = is_one_node(detected) ? NET_LOOPBACK : NET_ALL;
    int rc = -EADDRINUSE;
    uint16_t port = 0;
    int i;

    for (i = 0; i < detected->n_ports && rc == -EADDRINUSE; i++) {
        rc = serve(store, scope, (uint16_t)(detected->port + i), &port, err);
    }
    return rc == 0 ? sign(store, port, detected->token, deadline_ms, err) : rc;
}

/*
 * Where rank 0 may be: the step's first host; where the names of nodes are none
 * that can be looked up, the host that srun runs on, or this very machine. The
 * token tells whether it is.
 */
static int try_slurm(struct job_store *store, const struct detected *detected,
                     uint64_t deadline_ms, struct err *err)
{
    const char *launch_host = getenv("SLURM_LAUNCH_NODE_IPADDR");
    const char *const hosts[] = {
        is_one_node(detected) ? "127.0.0.1" : detected->host,
        launch_host != NULL ? launch_host : "127.0.0.1", "127.0.0.1"
    };
    struct err why;
    size_t h;
    int i;
    int rc = -EHOSTUNREACH;

    for (h = 0; h < sizeof(hosts) / sizeof(hosts[0]); h++) {
        for (i = 0; i < detected->n_ports; i++) {
            rc = try_address(store, hosts[h], (uint16_t)(detected->port + i),
                             detected->token, deadline_ms, &why);
            if (rc == 0) {
                return 0;
            }
            if (rc == -EHOSTUNREACH || rc == -ETIMEDOUT) {
                break; /* no other port of that host will do */
            }
        }
        if (h == 0) {
            *err = why; /* what went wrong where rank 0 should be */
        }
    }
    return rc;
}

static int open_slurm(struct job_store *store, const struct detected *detected,
                      uint64_t deadline_ms, struct flaunch_error *error)
{
    uint64_t pause_ms = PAUSE_FIRST_MS;
    struct err err = { 0 };
    int rc;

    if (detected->rank == 0) {
        rc = serve_slurm(store, detected, deadline_ms, &err);
    } else {
        do {
            rc = try_slurm(store, detected, deadline_ms, &err);
        } while (rc < 0 && wait_a_little(&pause_ms, deadline_ms));
    }
    return rc < 0 ? fail(error, detected, &err) : 0;
}

/* --- over a foreign channel ---------------------------------------------- */

static int publish(struct job_store *store, const struct detected *detected,
                   uint64_t deadline_ms, struct err *err)
{
    bool one_node = is_one_node(detected);
    struct job_address address = { 0 };
    char text[MEET_VALUE_MAX];
    int rc =
        serve(store, one_node ? NET_LOOPBACK : NET_ALL, 0, &address.port, err);

    if (rc < 0) {
        return rc;
    }
    token_make(address.token);
    job_address_find(&address, one_node);
    rc = sign(store, address.port, address.token, deadline_ms, err);
    if (rc == 0 && job_address_encode(&address, text, sizeof(text)) < 0) {
        rc = err_set(err, -EMSGSIZE, "this host has too many addresses");
    }
    if (rc == 0) {
        rc = store->meet.ops->put(&store->meet, address_key, text, deadline_ms,
                                  err);
    }
    return rc == 0 ? store->meet.ops->fence(&store->meet, deadline_ms, err)
                   : rc;
}

/* Get the address and go there; one that an earlier job left leads nowhere,
 * and is asked for again until rank 0 has left another. */
static int follow(struct job_store *store, uint64_t deadline_ms,
                  struct err *err)
{
    struct meet *meet = &store->meet;
    uint64_t pause_ms = PAUSE_FIRST_MS;
    struct job_address address;
    char text[MEET_VALUE_MAX];
    int rc = meet->ops->fence(meet, deadline_ms, err);
    bool again = rc == 0;

    while (again) {
        rc = meet->ops->get(meet, address_key, text, sizeof(text), deadline_ms,
                            err);
        if (rc < 0) {
            return rc;
        }
        rc = job_address_decode(text, &address);
        rc = rc < 0 ? err_set(err, rc, "what rank 0 left is not understood")
                    : try_all(store, &address, deadline_ms, err);
        again = rc < 0 && (meet->may_be_old || rc != -EPROTO) &&
                wait_a_little(&pause_ms, deadline_ms);
    }
    return rc;
}

static int open_foreign(struct job_store *store, struct detected *detected,
                        uint64_t deadline_ms, struct flaunch_error *error)
{
    struct err err = { 0 };
    int rc = meet_open(&store->meet, detected, deadline_ms, &err);

    if (rc == 0 && detected->world_size == 1) {
        return 0;
    }
    if (rc == 0) {
        rc = detected->rank == 0 ? publish(store, detected, deadline_ms, &err)
                                 : follow(store, deadline_ms, &err);
    }
    return rc < 0 ? fail(error, detected, &err) : 0;
}

/* Where libpmix is not installed, an address that the user gave will do, and
 * under Slurm one that follows from the step. */
static void avoid_pmix(struct detected *detected)
{
    detected->channel = detected->n_ports > 0       ? CHANNEL_SLURM
                        : detected->host[0] != '\0' ? CHANNEL_ADDRESS
                                                    : CHANNEL_PMIX;
    if (detected->channel != CHANNEL_PMIX) {
        detected_explain(detected, "%s: PMIx is not installed; meeting at %s\n",
                         launcher_name(detected->launcher), detected->host);
    }
}

int job_store_open(struct job_store *store, struct detected *detected,
                   uint64_t deadline_ms, struct flaunch_error *error)
{
    int rc;

    *store = (struct job_store){ .client = { .fd = -1 } };
    if (detected->channel == CHANNEL_PMIX && !meet_pmix_is_there()) {
        avoid_pmix(detected);
    }
    switch (detected->channel) {
    case CHANNEL_NONE:
        return 0;
    case CHANNEL_STORE:
    case CHANNEL_ADDRESS:
        rc = open_address(store, detected, deadline_ms, error);
        break;
    case CHANNEL_SLURM:
        rc = open_slurm(store, detected, deadline_ms, error);
        break;
    default:
        rc = open_foreign(store, detected, deadline_ms, error);
        break;
    }
    /* A file must stay until all have read it; the others end it at once. */
    if (detected->channel != CHANNEL_FILE || rc < 0) {
        meet_close(&store->meet, clock_deadline(CLOSE_MS));
    }
    store->by_rank_0 = detected->channel != CHANNEL_STORE;
    store->open = store->client.fd >= 0;
    return rc;
}

int job_store_leave(struct job_store *store, bool all_came, uint32_t n_others,
                    uint64_t deadline_ms, struct flaunch_error *error)
{
    const char *key = all_came ? left_key : told_key;
    int64_t n_left = 0;
    struct err err;
    int rc = 0;

    if (store->open && store->by_rank_0) {
        rc = store_client_add(&store->client, key, store->host == NULL,
                              deadline_ms, &n_left, &err);
        while (rc == 0 && store->host != NULL && n_left < n_others) {
            if (clock_poll_ms(deadline_ms) == 0) {
                rc = err_set(&err, -ETIMEDOUT,
                             "%lld other ranks did not finish flaunch_init",
                             (long long)(n_others - n_left));
                break;
            }
            clock_sleep_ms(POLL_MS);
            rc = store_client_add(&store->client, key, 0, deadline_ms, &n_left,
                                  &err);
        }
    }
    store_client_close(&store->client);
    meet_close(&store->meet, clock_deadline(CLOSE_MS));
    return rc < 0 ? fail_set(error, FLAUNCH_STORE, rc, "%s", err.text) : 0;
}

void job_store_close(struct job_store *store)
{
    store_client_close(&store->client);
    meet_close(&store->meet, clock_deadline(CLOSE_MS));
    store_host_stop(store->host);
    store->host = NULL;
}
