/*
 * The step of Slurm that this process is a task of; pure.
 *
 * SLURM_PROCID, SLURM_LOCALID and SLURM_NTASKS are also set in a batch script,
 * in a shell of salloc, and, for one of mpirun's daemons, in the workers it
 * starts; only a real step has an id below the reserved ones and counts that
 * agree. Source: srun(1), and slurm.h for the reserved ids.
 */
#ifndef FLAUNCH_COMMON_SLURM_STEP_H
#define FLAUNCH_COMMON_SLURM_STEP_H

#include "common/environ.h"

#define SLURM_PORT_TRIES 16

struct slurm_step {
    int rank;
    int world_size;
    int local_rank;
    int local_world_size; /* 0: not known */
    char first_host[256]; /* "" where the list cannot be read */
    char token[96];       /* names this run of this step */
    /* Where rank 0 may serve: port and those after it. */
    uint16_t port;
    uint16_t n_ports;
};

/* ENVIRON_MISSING: this is no task of a step, why says what tells so. */
enum environ_result slurm_step_read(const struct environ_view *view,
                                    struct slurm_step *step_out, char *why,
                                    size_t why_size);

#endif
