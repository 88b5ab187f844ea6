/*
 * The socket pair between agent and guard: packets out and in, and the
 * descriptors that go with them.
 *
 * Both ends are non-blocking: what a full socket does not take stays in the
 * sender's outbox, so that a stopped agent never stops the guard.
 */
#ifndef FLAUNCH_LAUNCHER_GUARD_PAIR_H
#define FLAUNCH_LAUNCHER_GUARD_PAIR_H

#include "launcher/guard_proto.h"

#include <stdbool.h>

/*
 * Make the pair, close-on-exec; pids: the guard will be in a PID namespace.
 * 0 or a negative errno.
 */
int guard_pair_open(bool pids, int *agent_fd_out, int *guard_fd_out);

/* Most descriptors of one message. */
#define GUARD_FDS_MAX 2

/* Messages not sent yet; zero-initialise. */
struct guard_outbox {
    struct buf bytes;
    struct buf fds; /* ints: descriptors of those messages, in order */
    bool pids;      /* pids are those of another PID namespace: the kernel
                     * shall translate them */
};

/*
 * Append a message; with SPAWNED go msg->count descriptors, which stay the
 * caller's and must be open until it is sent. 0 or -ENOMEM.
 */
int guard_outbox_put(struct guard_outbox *outbox, const struct guard_msg *msg,
                     const int *fds);

void guard_outbox_destroy(struct guard_outbox *outbox);

/*
 * Send what is in outbox as far as the socket takes it.
 *
 * Returns 0 when it is empty, 1 when the socket is full, GUARD_PAIR_LATER when
 * the kernel holds too many descriptors on their way, or a negative errno: the
 * other end is gone.
 */
#define GUARD_PAIR_LATER 2
int guard_pair_flush(int fd, struct guard_outbox *outbox);

/*
 * Send SPAWN with its plan (a memory file of ours, which the call closes).
 *
 * Returns 0 or a negative errno.
 */
int guard_pair_send_plan(int fd, const struct guard_plan *plan);

/* A packet, and the descriptors that came along: the caller's. */
struct guard_packet {
    uint8_t data[GUARD_PACKET_MAX];
    size_t len;
    int fds[GUARD_FDS_MAX];
    size_t n_fds;
    uint32_t pid; /* of the process its last message tells of, as seen here; 0:
                   * as the message says */
};

/*
 * Receive one packet: 1; 0 when none is there; -ECONNRESET at the end, or
 * another negative errno.
 */
int guard_pair_receive(int fd, struct guard_packet *packet_out);

/* Close what is left of a packet's descriptors. */
void guard_packet_close(struct guard_packet *packet);

#endif
