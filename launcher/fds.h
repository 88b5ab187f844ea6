/*
 * Descriptors of this process, as a whole.
 */
#ifndef FLAUNCH_LAUNCHER_FDS_H
#define FLAUNCH_LAUNCHER_FDS_H

#include "common/err.h"
#include <stdint.h>

/* Close every descriptor above last, but for keep. */
void fds_close_above(int last, int keep);

/*
 * Raise our soft limit to the hard one and see that need descriptors fit: 0,
 * or -EMFILE with a sentence that says what to do. Call it after the guard was
 * forked: the workers keep the limit we were given.
 */
int fds_raise_limit(uint64_t need, struct err *err);

#endif
