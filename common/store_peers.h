/*
 * Who may be a client of a store that listens on loopback only: this process's
 * user, root, and users that its owner vouches for.
 */
#ifndef FLAUNCH_COMMON_STORE_PEERS_H
#define FLAUNCH_COMMON_STORE_PEERS_H

#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct store_peers {
    /* Whether a user is one of the owner's; NULL: none is. Asked at most once
     * a second while the same user comes. */
    bool (*is_ours)(uid_t uid, void *arg);
    void *arg;
    int owner_fd; /* see sock_owner_open; negative: the kernel has no table */
    bool unknown_said;
    uid_t asked; /* of whom is_ours was asked last, and its answer */
    bool answer;
    uint64_t answer_until_ms;
};

void store_peers_init(struct store_peers *peers,
                      bool (*is_ours)(uid_t uid, void *arg), void *arg);
void store_peers_destroy(struct store_peers *peers);

/*
 * Whether the client at the address peer, who has come to the address own, may
 * come in: 0, or -EACCES with a sentence. Where the kernel cannot tell it may;
 * then, once, returns 1 with a sentence about that.
 */
int store_peers_check(struct store_peers *peers,
                      const struct sockaddr_storage *peer,
                      const struct sockaddr_storage *own, struct err *err);

#endif
