/*
 * Whose a TCP connection from this machine is: the kernel's table of sockets
 * knows the user of the other end.
 *
 * Source: sock_diag(7), the same that ss(8) asks.
 */
#ifndef FLAUNCH_COMMON_SOCK_OWNER_H
#define FLAUNCH_COMMON_SOCK_OWNER_H

#include <sys/socket.h>
#include <sys/types.h>

/* A descriptor to ask with, close-on-exec; or a negative errno where the
 * kernel has no such table. */
int sock_owner_open(void);

/*
 * The user of the socket at the other end of a connection whose ends are both
 * here: its address is peer, and own is ours.
 *
 * Returns 0 with uid_out; -ENOENT where no process has that socket any more;
 * another negative errno where the kernel does not tell.
 */
int sock_owner_find(int owner_fd, const struct sockaddr_storage *peer,
                    const struct sockaddr_storage *own, uid_t *uid_out);

#endif
