/*
 * What Slurm says of this job's nodes; pure.
 *
 * flaunch is one task on each node of a step: srun --ntasks-per-node=1. Source:
 * srun(1), the output environment.
 */
#ifndef FLAUNCH_LAUNCHER_SLURM_H
#define FLAUNCH_LAUNCHER_SLURM_H

#include "common/environ.h"

#include <stdint.h>

struct slurm_hint {
    bool usable; /* one task per node of a step: the fields below count */
    uint32_t n_nodes;
    uint32_t node_rank;
    uint16_t port;   /* derived from job and step, or what is set apart */
    char host[256];  /* where node 0 is; "" where that cannot be read */
    char run_id[64]; /* "slurm-JOB.STEP" */
    uint32_t n_gpus; /* of this node; 0: none, or not known */
    char
        refuse[512]; /* why nothing can be guessed; "" where there is no need */
};

void slurm_read(const struct environ_view *view, struct slurm_hint *hint_out);

#endif
