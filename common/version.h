/*
 * The version of flaunch and libflaunch.
 */
#ifndef FLAUNCH_COMMON_VERSION_H
#define FLAUNCH_COMMON_VERSION_H

#define FLAUNCH_VERSION_TEXT "0.1.0"

#endif
