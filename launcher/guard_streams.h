/*
 * The guard's part in the workers' output: it makes their pipes and
 * pseudo-terminals, and keeps a duplicate of every read end. If the agent
 * dies, what is still in them goes to our own stdout or stderr in whole lines.
 */
#ifndef FLAUNCH_LAUNCHER_GUARD_STREAMS_H
#define FLAUNCH_LAUNCHER_GUARD_STREAMS_H

#include "launcher/guard_proto.h"

#include <stdbool.h>

/* Most bytes of a line that is kept back until it ends. */
#define GUARD_LINE_MAX ((size_t)64 * 1024)
/* How long the copy goes on after the last process is gone. */
#define GUARD_COPY_MS 1000

struct guard_source {
    int fd;          /* a read end, non-blocking; -1: at its end */
    int target;      /* STDOUT_FILENO or STDERR_FILENO; -1: shown nowhere */
    struct buf rest; /* read and not written */
};

/* Zero-initialise. */
struct guard_streams {
    struct guard_source *sources;
    size_t n;
    size_t cap;
    int sinks[3]; /* by number: where a copy is written; 0: not opened yet */
    size_t owners[3]; /* by number: the source, counted from 1, whose line has
                       * been written in part; 0: none */
};

/* What one worker is given, and what the agent gets of it. */
struct guard_ends {
    int worker[2]; /* to become its stdout and stderr; -1: none is needed */
    int agent[2];  /* read ends, owned by guard_streams */
    uint32_t n_agent;
};

/* Make what the worker's streams need: 0 or a negative errno. */
int guard_streams_open(struct guard_streams *streams,
                       const struct guard_stream spec[2],
                       struct guard_ends *ends_out);

/* Close the worker's side, after fork. */
void guard_ends_close(struct guard_ends *ends);

/*
 * Copy what there is, as far as it can be written without waiting. last: no
 * more will come, so unfinished lines go out as well. Returns whether
 * anything is still open or unwritten.
 */
bool guard_streams_copy(struct guard_streams *streams, bool last);

/* Close the read ends. */
void guard_streams_drop(struct guard_streams *streams);

#endif
