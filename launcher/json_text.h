/*
 * Text that may hold any bytes as a JSON string, for jansson, which takes UTF-8
 * only: what is none becomes U+FFFD.
 */
#ifndef FLAUNCH_LAUNCHER_JSON_TEXT_H
#define FLAUNCH_LAUNCHER_JSON_TEXT_H

#include <jansson.h>

/* A new string, or NULL without memory. */
json_t *json_text(const char *text);

#endif
