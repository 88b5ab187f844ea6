/*
 * A blocking client of a TCPStore, ours or PyTorch's; every call takes an
 * absolute deadline.
 *
 * It asks for nothing that came after PyTorch 2.2 unless told to. Keys get a
 * "/" in front, as PyTorch's clients do it, so that both see each other's keys.
 * After a reply that did not come in time, or was none, the connection is
 * closed: a late one could not be told from the next. Every sentence names host
 * and port, the key, and how long it took.
 */
#ifndef FLAUNCH_WORKER_STORE_CLIENT_H
#define FLAUNCH_WORKER_STORE_CLIENT_H

#include "common/buf.h"
#include "common/err.h"
#include "worker/store_dial.h"

#include <stdbool.h>
#include <stdint.h>

struct store_client {
    int fd; /* -1: closed */
    char host[256];
    uint16_t port;
    enum store_wanted wanted;
    enum store_dialect dialect; /* that the server speaks */
    bool one_by_one;     /* the server closes on GET of a key that is missing */
    uint64_t started_ms; /* the call under way */
    struct buf out;
    struct buf in;
    unsigned n_requests; /* all in all, the hello's two included */
};

/*
 * Connect, trying again with growing pauses while nobody listens there, until
 * the deadline. 0 or a negative errno with a sentence; -EPROTO when what
 * listens there is no such store.
 */
int store_client_connect(struct store_client *client, const char *host,
                         uint16_t port, uint64_t deadline_ms, struct err *err);

/* The same of a server that may be older than PyTorch 2.2. */
int store_client_connect_any(struct store_client *client, const char *host,
                             uint16_t port, enum store_wanted wanted,
                             uint64_t deadline_ms, struct err *err);

/* As store_client_connect, but every address is tried once only. */
int store_client_try(struct store_client *client, const char *host,
                     uint16_t port, uint64_t deadline_ms, struct err *err);

/* Close; allowed after a failed connect, and twice. */
void store_client_close(struct store_client *client);

/* The numeric address at which the store was reached; "" where it is not
 * known. */
void store_client_peer(const struct store_client *client, char *address_out,
                       size_t size);

/*
 * Errors of all below: -ENOTCONN after the connection was closed; -ETIMEDOUT;
 * -EMSGSIZE for what is too long to ask; -EPROTO for what is no answer;
 * -ENOTSUP where the server's release, or its backend, does not know the
 * request, and the connection can still be used; others of sockets.
 */

/* Set a key. Returns when it is sent, as PyTorch's does. */
int store_client_set(struct store_client *client, const char *key,
                     struct bytes value, uint64_t deadline_ms, struct err *err);

/* Set n keys, all or (with flaunch's server) none. */
int store_client_multi_set(struct store_client *client, const char *const *keys,
                           const struct bytes *values, size_t n,
                           uint64_t deadline_ms, struct err *err);

int store_client_append(struct store_client *client, const char *key,
                        struct bytes suffix, uint64_t deadline_ms,
                        struct err *err);

/*
 * Wait until a key exists: 0, or -ETIMEDOUT at the deadline, and then the
 * connection can still be used.
 */
int store_client_wait(struct store_client *client, const char *key,
                      uint64_t deadline_ms, struct err *err);

/*
 * Wait until all of n_keys keys exist, at most STORE_CLIENT_KEYS_MAX: as
 * store_client_wait; the sentence of -ETIMEDOUT names those that are missing.
 */
#define STORE_CLIENT_KEYS_MAX 1024
int store_client_wait_all(struct store_client *client, const char *const *keys,
                          size_t n_keys, uint64_t deadline_ms, struct err *err);

/*
 * Wait for a key and get its value into value_out, which the caller owns. One
 * round trip where the key is there.
 */
int store_client_get(struct store_client *client, const char *key,
                     uint64_t deadline_ms, struct buf *value_out,
                     struct err *err);

/* Wait for n keys and get their values; each is the caller's. */
int store_client_multi_get(struct store_client *client, const char *const *keys,
                           size_t n, uint64_t deadline_ms,
                           struct buf *values_out, struct err *err);

/* Add to a counter; a missing one counts as 0. */
int store_client_add(struct store_client *client, const char *key,
                     int64_t delta, uint64_t deadline_ms, int64_t *value_out,
                     struct err *err);

/* Set key to desired if it holds expected, or is missing and expected is
 * empty; value_out, the caller's, is the reply. */
int store_client_compare_set(struct store_client *client, const char *key,
                             struct bytes expected, struct bytes desired,
                             uint64_t deadline_ms, struct buf *value_out,
                             struct err *err);

/* Whether a key exists now; and whether all of n do. */
int store_client_check(struct store_client *client, const char *key,
                       uint64_t deadline_ms, bool *exists_out, struct err *err);
int store_client_check_all(struct store_client *client, const char *const *keys,
                           size_t n, uint64_t deadline_ms, bool *exist_out,
                           struct err *err);

int store_client_delete(struct store_client *client, const char *key,
                        uint64_t deadline_ms, bool *existed_out,
                        struct err *err);

/* All keys, other clients' and init/ included. */
int store_client_num_keys(struct store_client *client, uint64_t deadline_ms,
                          int64_t *n_out, struct err *err);

/*
 * Names of all keys that begin with "/", without it, as strings: an array whose
 * one free(3) frees all.
 */
int store_client_list_keys(struct store_client *client, uint64_t deadline_ms,
                           char ***keys_out, size_t *n_out, struct err *err);

int store_client_queue_push(struct store_client *client, const char *key,
                            struct bytes value, uint64_t deadline_ms,
                            struct err *err);

/* Take the first element, and wait for one if asked to; -ENODATA where there is
 * none, or another client was faster. */
int store_client_queue_pop(struct store_client *client, const char *key,
                           bool wait, uint64_t deadline_ms,
                           struct buf *value_out, struct err *err);

int store_client_queue_len(struct store_client *client, const char *key,
                           uint64_t deadline_ms, int64_t *n_out,
                           struct err *err);

/*
 * Wait until world_size clients have come to the barrier of key, which serves
 * once. Of a server that has none it is made of two keys below key, as a
 * PrefixStore of PyTorch does it.
 */
int store_client_barrier(struct store_client *client, const char *key,
                         int64_t world_size, uint64_t deadline_ms,
                         struct err *err);

/* A round trip: -ENOTSUP before PyTorch 2.5. */
int store_client_ping(struct store_client *client, uint32_t nonce,
                      uint64_t deadline_ms, struct err *err);

#endif
