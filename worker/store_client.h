/*
 * A blocking client of a TCPStore, ours or PyTorch's; every call takes an
 * absolute deadline.
 *
 * It speaks the dialect of PyTorch 2.2 and later and asks for nothing that
 * came after. Keys get a "/" in front, as PyTorch's clients do it, so that
 * both see each other's keys. After a reply that did not come in time the
 * connection is closed: a late one could not be told from the next.
 */
#ifndef FLAUNCH_WORKER_STORE_CLIENT_H
#define FLAUNCH_WORKER_STORE_CLIENT_H

#include "common/buf.h"
#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

struct store_client {
    int fd; /* -1: closed */
    char host[256];
    uint16_t port;
    struct buf out;
    unsigned n_requests; /* on this connection, the hello's two included */
};

/*
 * Connect, trying again with growing pauses while nobody listens there, until
 * the deadline. 0 or a negative errno with a sentence that names host and
 * port; -EPROTO when what listens there is no such store.
 */
int store_client_connect(struct store_client *client, const char *host,
                         uint16_t port, uint64_t deadline_ms, struct err *err);

/* The same, but every address is tried once only. */
int store_client_try(struct store_client *client, const char *host,
                     uint16_t port, uint64_t deadline_ms, struct err *err);

/* Close; allowed after a failed connect, and twice. */
void store_client_close(struct store_client *client);

/* The numeric address at which the store was reached; "" where it is not
 * known. */
void store_client_peer(const struct store_client *client, char *address_out,
                       size_t size);

/* Set a key. Returns when it is sent, as PyTorch's does. */
int store_client_set(struct store_client *client, const char *key,
                     struct bytes value, uint64_t deadline_ms, struct err *err);

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

/* Wait for a key and get its value into value_out, which the caller owns. */
int store_client_get(struct store_client *client, const char *key,
                     uint64_t deadline_ms, struct buf *value_out,
                     struct err *err);

/* Add to a counter; a missing one counts as 0. */
int store_client_add(struct store_client *client, const char *key,
                     int64_t delta, uint64_t deadline_ms, int64_t *value_out,
                     struct err *err);

/* Whether a key exists now. */
int store_client_check(struct store_client *client, const char *key,
                       uint64_t deadline_ms, bool *exists_out, struct err *err);

#endif
