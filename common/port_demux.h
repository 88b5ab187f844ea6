/*
 * One port, two kinds of clients: TCPStore's, and other agents of flaunch. The
 * first byte tells, since no dialect of the store has an opcode like it.
 */
#ifndef FLAUNCH_COMMON_PORT_DEMUX_H
#define FLAUNCH_COMMON_PORT_DEMUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who takes the connections of agents; the store's thread calls. */
struct port_demux {
    /*
     * fd    the connection, the taker's from now on; close-on-exec
     * head  what was read of it already, len bytes, at least one
     */
    void (*take)(int fd, const uint8_t *head, size_t len, void *arg);
    void *arg;
};

/* Whether a connection that begins so is an agent's; len is not 0. */
bool port_demux_is_agent(const uint8_t *head, size_t len);

/* Hand over: 0, or a negative errno when fd cannot be duplicated. */
int port_demux_hand_over(const struct port_demux *demux, int fd,
                         const uint8_t *head, size_t len);

#endif
