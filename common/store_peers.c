#include "common/store_peers.h"

#include "common/clock.h"
#include "common/sock_owner.h"

#include <errno.h>
#include <unistd.h>

/* For how long an answer about a user holds. */
#define ANSWER_MS 1000

void store_peers_init(struct store_peers *peers,
                      bool (*is_ours)(uid_t uid, void *arg), void *arg)
{
    *peers = (struct store_peers){ .is_ours = is_ours,
                                   .arg = arg,
                                   .owner_fd = sock_owner_open() };
}

void store_peers_destroy(struct store_peers *peers)
{
    if (peers->owner_fd >= 0) {
        (void)close(peers->owner_fd);
    }
    peers->owner_fd = -EBADF;
}

/* Looking is dear, and clients come by thousands. */
static bool is_owners(struct store_peers *peers, uid_t uid)
{
    uint64_t now_ms = clock_ms();

    if (peers->is_ours == NULL) {
        return false;
    }
    if (uid != peers->asked || now_ms >= peers->answer_until_ms) {
        peers->asked = uid;
        peers->answer = peers->is_ours(uid, peers->arg);
        peers->answer_until_ms = now_ms + ANSWER_MS;
    }
    return peers->answer;
}

int store_peers_check(struct store_peers *peers,
                      const struct sockaddr_storage *peer,
                      const struct sockaddr_storage *own, struct err *err)
{
    uid_t uid;
    int rc = peers->owner_fd < 0
                 ? peers->owner_fd
                 : sock_owner_find(peers->owner_fd, peer, own, &uid);

    if (rc == 0) {
        if (uid == 0 || uid == geteuid() || is_owners(peers, uid)) {
            return 0;
        }
        return err_set(err, -EACCES, "it is of user %u", (unsigned)uid);
    }
    if (rc == -ENOENT) {
        return err_set(err, -EACCES, "its process has gone");
    }
    if (peers->unknown_said) {
        return 0;
    }
    peers->unknown_said = true;
    (void)err_sys(err, rc,
                  "the kernel does not tell who connects to the store; every "
                  "user of this machine can");
    return 1;
}
