/*
 * A name that nobody else has.
 */
#ifndef FLAUNCH_LAUNCHER_UUID_H
#define FLAUNCH_LAUNCHER_UUID_H

#define UUID_TEXT_SIZE 37

/* A random UUID, version 4, as text: RFC 9562. */
void uuid_make(char text_out[UUID_TEXT_SIZE]);

#endif
