/*
 * Who started this process, and where its ranks can meet; pure, over an
 * environment passed in.
 *
 * A record of rank, size, local rank and local size is taken whole from one
 * launcher, never completed from another; the innermost launcher wins.
 */
#ifndef FLAUNCH_WORKER_DETECT_H
#define FLAUNCH_WORKER_DETECT_H

#include "worker/environ.h"
#include "worker/flaunch.h"
#include "worker/launchers.h"

#include <stdbool.h>

/* How the ranks find their store. */
enum channel {
    CHANNEL_NONE,    /* a job of one has nobody to meet */
    CHANNEL_STORE,   /* the launcher serves it at host:port */
    CHANNEL_ADDRESS, /* rank 0 serves it at host:port */
    CHANNEL_PMI,     /* rank 0 tells its address over PMI-1 */
    CHANNEL_PMIX,    /* over PMIx */
    CHANNEL_HOROVOD, /* in Horovod's HTTP store at host:port */
    CHANNEL_SLURM,   /* first host of the step, a port derived from its id */
    CHANNEL_FILE,    /* in a file */
};

struct detected {
    enum launcher launcher;
    int rank;             /* -1: the channel tells */
    int world_size;       /* 0: the channel tells */
    int local_rank;       /* -1: the channel tells */
    int local_world_size; /* 0: the channel tells, if anybody does */
    enum channel channel;
    char host[256]; /* for PMIx and Slurm: MASTER_ADDR where it is set */
    uint16_t port;
    uint16_t n_ports; /* Slurm: how many from port on may be tried */
    char path[256];   /* of the file */
    char token[96];   /* Slurm: names this run of the step; else "" */
    char explanation[4096];
};

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

/* Append a line to the explanation; what does not fit is cut. */
void detect_explain(struct detected *detected, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
