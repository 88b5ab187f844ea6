/*
 * Blocking use of sockets, whatever their own flags say, with an absolute
 * deadline. All functions return 0 or a negative errno, -ETIMEDOUT at the
 * deadline.
 */
#ifndef FLAUNCH_WORKER_SOCK_H
#define FLAUNCH_WORKER_SOCK_H

#include "common/err.h"

#include <netdb.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Connect to one address; returns the socket, non-blocking and close-on-exec.
 * -ECONNREFUSED also where TCP connected the socket to itself.
 */
int sock_connect(const struct addrinfo *address, uint64_t deadline_ms);

/*
 * Connect to a host by name or number, trying each of its addresses once;
 * returns the socket, or a negative errno with a sentence that begins with
 * what.
 */
int sock_connect_host(const char *host, uint16_t port, uint64_t deadline_ms,
                      const char *what, struct err *err);

int sock_send(int fd, const void *data, size_t len, uint64_t deadline_ms);

/* Exactly len bytes; -ECONNRESET where the stream ends before. */
int sock_receive(int fd, void *data, size_t len, uint64_t deadline_ms);

/* At least one byte, at most size; len_out is 0 at the end of the stream. */
int sock_receive_some(int fd, void *data, size_t size, uint64_t deadline_ms,
                      size_t *len_out);

#endif
