/*
 * The store's client as programs see it: struct err and buf to what they know.
 */
#include "common/clock.h"
#include "common/env_names.h"
#include "common/parse.h"
#include "worker/fail.h"
#include "worker/flaunch.h"
#include "worker/store_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct flaunch_store {
    struct store_client client;
};

uint64_t flaunch_deadline(uint64_t timeout_ms)
{
    return clock_deadline(timeout_ms);
}

/* Pass rc on, with the sentence where it is an error. */
static int done(struct flaunch_error *error, int rc, const struct err *err)
{
    return rc < 0 ? fail_set(error, FLAUNCH_STORE, rc, "%s", err->text) : 0;
}

static int usage(struct flaunch_error *error, const char *what)
{
    return fail_set(error, FLAUNCH_USAGE, -EINVAL, "%s", what);
}

/* What would otherwise be our crash is the caller's mistake. */
static int check_keys(const struct flaunch_store *store,
                      const char *const *keys, size_t n,
                      struct flaunch_error *error)
{
    size_t i;

    if (store == NULL || (keys == NULL && n > 0)) {
        return usage(error, "flaunch_store: no store, or no keys");
    }
    for (i = 0; i < n; i++) {
        if (keys[i] == NULL) {
            return usage(error, "flaunch_store: a key is NULL");
        }
    }
    return 0;
}

static int check_key(const struct flaunch_store *store, const char *key,
                     struct flaunch_error *error)
{
    return check_keys(store, &key, 1, error);
}

static struct bytes bytes_of(const void *data, size_t len)
{
    return (struct bytes){ .data = data, .len = len };
}

/* Give a value away, with a NUL behind it. */
static int hand_over(struct buf *value, void **value_out, size_t *len_out,
                     struct flaunch_error *error)
{
    size_t len = value->len;

    if (buf_append_u8(value, 0) < 0) {
        buf_destroy(value);
        return fail_set(error, FLAUNCH_STORE, -ENOMEM, "out of memory");
    }
    *value_out = value->data;
    *len_out = len;
    return 0;
}

/* --- connecting ---------------------------------------------------------- */

static int place_of_job(char *host, size_t size, uint16_t *port_out,
                        struct flaunch_error *error)
{
    const char *store = getenv(ENV_FLAUNCH_STORE);
    const char *address = getenv(ENV_MASTER_ADDR);
    const char *port_text = getenv(ENV_MASTER_PORT);
    int64_t port;

    if (store != NULL && parse_host_port(store, host, size, port_out) == 0) {
        return 0;
    }
    if (address == NULL || port_text == NULL ||
        parse_int(port_text, 1, UINT16_MAX, &port) < 0) {
        return fail_set(error, FLAUNCH_ENVIRONMENT, -EINVAL,
                        "no host given, and neither FLAUNCH_STORE nor "
                        "MASTER_ADDR and MASTER_PORT say where the store is");
    }
    (void)snprintf(host, size, "%s", address);
    *port_out = (uint16_t)port;
    return 0;
}

int flaunch_store_connect(struct flaunch_store **store_out, const char *host,
                          int port, const char *release, uint64_t deadline,
                          struct flaunch_error *error)
{
    enum store_wanted wanted = STORE_WANT_D;
    struct flaunch_store *store;
    char place[256];
    uint16_t at_port = (uint16_t)port;
    struct err err = { 0 };
    int rc;

    if (store_out == NULL ||
        (host != NULL && (port < 1 || port > UINT16_MAX))) {
        return usage(error, "flaunch_store_connect: give a port of 1 to 65535");
    }
    if (release != NULL && store_wanted_parse(release, &wanted) < 0) {
        return usage(error, "flaunch_store_connect: release is none of 2.2, "
                            "2.1, 1.13, auto");
    }
    if (host == NULL) {
        rc = place_of_job(place, sizeof(place), &at_port, error);
        if (rc < 0) {
            return rc;
        }
        host = place;
    }
    store = calloc(1, sizeof(*store));
    if (store == NULL) {
        return fail_set(error, FLAUNCH_SYSTEM, -ENOMEM, "out of memory");
    }
    rc = store_client_connect_any(&store->client, host, at_port, wanted,
                                  deadline, &err);
    if (rc < 0) {
        free(store);
        return done(error, rc, &err);
    }
    *store_out = store;
    return 0;
}

void flaunch_store_close(struct flaunch_store *store)
{
    if (store != NULL) {
        store_client_close(&store->client);
        free(store);
    }
}

/* --- one key ------------------------------------------------------------- */

int flaunch_store_set(struct flaunch_store *store, const char *key,
                      const void *value, size_t len, uint64_t deadline,
                      struct flaunch_error *error)
{
    struct err err = { 0 };
    int rc = check_key(store, key, error);

    return rc < 0 ? rc
                  : done(error,
                         store_client_set(&store->client, key,
                                          bytes_of(value, len), deadline, &err),
                         &err);
}

int flaunch_store_append(struct flaunch_store *store, const char *key,
                         const void *suffix, size_t len, uint64_t deadline,
                         struct flaunch_error *error)
{
    struct err err = { 0 };
    int rc = check_key(store, key, error);

    return rc < 0 ? rc
                  : done(error,
                         store_client_append(&store->client, key,
                                             bytes_of(suffix, len), deadline,
                                             &err),
                         &err);
}

int flaunch_store_get(struct flaunch_store *store, const char *key,
                      void **value_out, size_t *len_out, uint64_t deadline,
                      struct flaunch_error *error)
{
    struct buf value = { 0 };
    struct err err = { 0 };
    int rc = check_key(store, key, error);

    if (rc < 0) {
        return rc;
    }
    rc = store_client_get(&store->client, key, deadline, &value, &err);
    return rc < 0 ? done(error, rc, &err)
                  : hand_over(&value, value_out, len_out, error);
}

int flaunch_store_add(struct flaunch_store *store, const char *key,
                      int64_t delta, int64_t *sum_out, uint64_t deadline,
                      struct flaunch_error *error)
{
    struct err err = { 0 };
    int64_t sum = 0;
    int rc = check_key(store, key, error);

    if (rc < 0) {
        return rc;
    }
    rc = store_client_add(&store->client, key, delta, deadline, &sum, &err);
    if (rc == 0 && sum_out != NULL) {
        *sum_out = sum;
    }
    return done(error, rc, &err);
}

int flaunch_store_compare_set(struct flaunch_store *store, const char *key,
                              const void *expected, size_t expected_len,
                              const void *desired, size_t desired_len,
                              void **value_out, size_t *len_out,
                              uint64_t deadline, struct flaunch_error *error)
{
    struct buf value = { 0 };
    struct err err = { 0 };
    int rc = check_key(store, key, error);

    if (rc < 0) {
        return rc;
    }
    rc = store_client_compare_set(
        &store->client, key, bytes_of(expected, expected_len),
        bytes_of(desired, desired_len), deadline, &value, &err);
    return rc < 0 ? done(error, rc, &err)
                  : hand_over(&value, value_out, len_out, error);
}

int flaunch_store_delete(struct flaunch_store *store, const char *key,
                         int *existed_out, uint64_t deadline,
                         struct flaunch_error *error)
{
    struct err err = { 0 };
    bool existed = false;
    int rc = check_key(store, key, error);

    if (rc < 0) {
        return rc;
    }
    rc = store_client_delete(&store->client, key, deadline, &existed, &err);
    if (rc == 0 && existed_out != NULL) {
        *existed_out = existed;
    }
    return done(error, rc, &err);
}

/* --- many keys ----------------------------------------------------------- */

int flaunch_store_wait(struct flaunch_store *store, const char *const *keys,
                       size_t n, uint64_t deadline, struct flaunch_error *error)
{
    struct err err = { 0 };
    int rc = check_keys(store, keys, n, error);

    return rc < 0 || n == 0 ? rc
                            : done(error,
                                   store_client_wait_all(&store->client, keys,
                                                         n, deadline, &err),
                                   &err);
}

int flaunch_store_check(struct flaunch_store *store, const char *const *keys,
                        size_t n, int *all_out, uint64_t deadline,
                        struct flaunch_error *error)
{
    struct err err = { 0 };
    bool all = false;
    int rc = check_keys(store, keys, n, error);

    if (rc < 0) {
        return rc;
    }
    rc = store_client_check_all(&store->client, keys, n, deadline, &all, &err);
    if (rc == 0) {
        *all_out = all;
    }
    return done(error, rc, &err);
}

int flaunch_store_ping(struct flaunch_store *store, uint64_t deadline,
                       struct flaunch_error *error)
{
    struct err err = { 0 };
    int rc = check_keys(store, NULL, 0, error);

    return rc < 0 ? rc
                  : done(error,
                         store_client_ping(&store->client, (uint32_t)clock_ns(),
                                           deadline, &err),
                         &err);
}

int flaunch_store_num_keys(struct flaunch_store *store, int64_t *n_out,
                           uint64_t deadline, struct flaunch_error *error)
{
    struct err err = { 0 };
    int rc = check_keys(store, NULL, 0, error);

    return rc < 0 ? rc
                  : done(error,
                         store_client_num_keys(&store->client, deadline, n_out,
                                               &err),
                         &err);
}

int flaunch_store_list_keys(struct flaunch_store *store, char ***keys_out,
                            size_t *n_out, uint64_t deadline,
                            struct flaunch_error *error)
{
    struct err err = { 0 };

    return done(
        error,
        store_client_list_keys(&store->client, deadline, keys_out, n_out, &err),
        &err);
}

int flaunch_store_multi_set(struct flaunch_store *store,
                            const char *const *keys,
                            const struct flaunch_bytes *values, size_t n,
                            uint64_t deadline, struct flaunch_error *error)
{
    struct bytes *copy;
    struct err err = { 0 };
    size_t i;
    int rc = check_keys(store, keys, n, error);

    if (rc < 0 || n == 0) {
        return rc;
    }
    copy = calloc(n, sizeof(*copy));
    if (copy == NULL) {
        return fail_set(error, FLAUNCH_SYSTEM, -ENOMEM, "out of memory");
    }
    for (i = 0; i < n; i++) {
        copy[i] = bytes_of(values[i].data, values[i].len);
    }
    rc = store_client_multi_set(&store->client, keys, copy, n, deadline, &err);
    free(copy);
    return done(error, rc, &err);
}

/* Give n values away, all or none. */
static int hand_over_all(struct buf *values, size_t n,
                         struct flaunch_bytes *values_out,
                         struct flaunch_error *error)
{
    int rc = 0;
    size_t i;

    for (i = 0; i < n && rc == 0; i++) {
        rc = hand_over(&values[i], &values_out[i].data, &values_out[i].len,
                       error);
    }
    if (rc < 0) {
        while (n-- > 0) {
            buf_destroy(&values[n]);
        }
    }
    return rc;
}

int flaunch_store_multi_get(struct flaunch_store *store,
                            const char *const *keys, size_t n,
                            struct flaunch_bytes *values_out, uint64_t deadline,
                            struct flaunch_error *error)
{
    struct buf *values;
    struct err err = { 0 };
    int rc = check_keys(store, keys, n, error);

    if (rc < 0 || n == 0) {
        return rc;
    }
    values = calloc(n, sizeof(*values));
    if (values == NULL) {
        return fail_set(error, FLAUNCH_SYSTEM, -ENOMEM, "out of memory");
    }
    rc =
        store_client_multi_get(&store->client, keys, n, deadline, values, &err);
    rc = rc < 0 ? done(error, rc, &err)
                : hand_over_all(values, n, values_out, error);
    free(values);
    return rc;
}

/* --- queues and barriers ------------------------------------------------- */

int flaunch_store_queue_push(struct flaunch_store *store, const char *queue,
                             const void *value, size_t len, uint64_t deadline,
                             struct flaunch_error *error)
{
    struct err err = { 0 };
    int rc = check_key(store, queue, error);

    return rc < 0 ? rc
                  : done(error,
                         store_client_queue_push(&store->client, queue,
                                                 bytes_of(value, len), deadline,
                                                 &err),
                         &err);
}

int flaunch_store_queue_pop(struct flaunch_store *store, const char *queue,
                            int wait, void **value_out, size_t *len_out,
                            uint64_t deadline, struct flaunch_error *error)
{
    struct buf value = { 0 };
    struct err err = { 0 };
    int rc = check_key(store, queue, error);

    if (rc < 0) {
        return rc;
    }
    rc = store_client_queue_pop(&store->client, queue, wait != 0, deadline,
                                &value, &err);
    return rc < 0 ? done(error, rc, &err)
                  : hand_over(&value, value_out, len_out, error);
}

int flaunch_store_queue_len(struct flaunch_store *store, const char *queue,
                            int64_t *n_out, uint64_t deadline,
                            struct flaunch_error *error)
{
    struct err err = { 0 };

    return done(
        error,
        store_client_queue_len(&store->client, queue, deadline, n_out, &err),
        &err);
}

int flaunch_store_barrier(struct flaunch_store *store, const char *key,
                          int64_t world_size, uint64_t deadline,
                          struct flaunch_error *error)
{
    struct err err = { 0 };

    return done(
        error,
        store_client_barrier(&store->client, key, world_size, deadline, &err),
        &err);
}
