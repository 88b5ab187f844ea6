/*
 * Who started this process; pure, over an environment passed in.
 *
 * A record of rank, size, local rank and local size is taken whole from one
 * launcher, never completed from another; the innermost launcher wins.
 */
#ifndef FLAUNCH_WORKER_DETECT_H
#define FLAUNCH_WORKER_DETECT_H

#include "worker/detected.h"
#include "common/environ.h"
#include "worker/flaunch.h"

#include <stdbool.h>

/* What the caller asks for; NULL and false: nothing. */
struct detect_wish {
    const char *launcher; /* the only one to believe */
    const char *url;      /* env://, tcp://HOST:PORT, file:///PATH */
    bool horovod;         /* only Horovod's or MPI's record will do */
};

/*
 * Returns 0, or -EINVAL with a sentence that names the variables.
 * FLAUNCH_LAUNCHER counts where wish names no launcher.
 */
int detect(const struct environ_view *view, const struct detect_wish *wish,
           struct detected *detected_out, struct flaunch_error *error);

#endif
