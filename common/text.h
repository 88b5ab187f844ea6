/*
 * Text that came from elsewhere, made fit for one line on a screen.
 */
#ifndef FLAUNCH_COMMON_TEXT_H
#define FLAUNCH_COMMON_TEXT_H

#include <stddef.h>

/*
 * Copy text with control characters as \xNN, cut at size - 1 bytes; bytes
 * above 0x7f stay as they are. Returns the length.
 */
size_t text_escape(char *out, size_t size, const char *text);

#endif
