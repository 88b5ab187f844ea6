/*
 * What detection found: whose record, the place in it, and how the ranks find
 * their store.
 */
#ifndef FLAUNCH_WORKER_DETECTED_H
#define FLAUNCH_WORKER_DETECTED_H

#include "worker/launchers.h"

#include <stdint.h>

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

/* Append a line to the explanation; what does not fit is cut. */
void detected_explain(struct detected *detected, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
