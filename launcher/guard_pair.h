/*
 * The socket pair between agent and guard: packets out and in.
 *
 * Both ends are non-blocking: what a full socket does not take stays in the
 * sender's buf, so that a stopped agent never stops the guard.
 */
#ifndef FLAUNCH_LAUNCHER_GUARD_PAIR_H
#define FLAUNCH_LAUNCHER_GUARD_PAIR_H

#include "launcher/guard_proto.h"

/* Make the pair, close-on-exec: 0 or a negative errno. */
int guard_pair_open(int *agent_fd_out, int *guard_fd_out);

/*
 * Send what is in out as far as the socket takes it.
 *
 * Returns 0 when out is empty, 1 when more is left, or a negative errno: the
 * other end is gone.
 */
int guard_pair_flush(int fd, struct buf *out);

/*
 * Send SPAWN with its plan (a memory file of ours, which the call closes).
 *
 * Returns 0 or a negative errno.
 */
int guard_pair_send_plan(int fd, const struct guard_plan *plan);

/* A packet, and the descriptor that came along or -1: the caller's. */
struct guard_packet {
    uint8_t data[GUARD_PACKET_MAX];
    size_t len;
    int plan_fd;
};

/*
 * Receive one packet: 1; 0 when none is there; -ECONNRESET at the end, or
 * another negative errno.
 */
int guard_pair_receive(int fd, struct guard_packet *packet_out);

#endif
