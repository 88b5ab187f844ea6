/*
 * Who listens on a TCP port of this machine.
 */
#ifndef FLAUNCH_LAUNCHER_PORT_HOLDER_H
#define FLAUNCH_LAUNCHER_PORT_HOLDER_H

#include <stddef.h>
#include <stdint.h>

/*
 * "pid 123 (python train.py)", or "a process that is not visible to us"
 * where the holder is another user's, or "an unknown process".
 */
void port_holder_describe(uint16_t port, char *text_out, size_t size);

#endif
