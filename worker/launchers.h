/*
 * The launchers we know, and the variables in which each gives its record.
 * Source: what Open MPI 4 and 5, MPICH 4, Slurm 22 and 24, Horovod 0.28 and
 * torchrun were seen to set; the others by their documentation.
 */
#ifndef FLAUNCH_WORKER_LAUNCHERS_H
#define FLAUNCH_WORKER_LAUNCHERS_H

#include <stdbool.h>
#include <stddef.h>

/* In order: a worker that has several records belongs to the first. Inner
 * launchers come first, since outer records are inherited and inner are not. */
enum launcher {
    LAUNCHER_NONE, /* a job of one */
    LAUNCHER_FLAUNCH,
    LAUNCHER_TORCHRUN,
    LAUNCHER_HOROVOD,
    LAUNCHER_ENV, /* RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT by hand */
    LAUNCHER_OPENMPI,
    LAUNCHER_JSRUN,
    LAUNCHER_FLUX,
    LAUNCHER_PALS,
    LAUNCHER_MVAPICH,
    LAUNCHER_HYDRA,
    LAUNCHER_PRRTE,
    LAUNCHER_SLURM,
    LAUNCHER_APRUN,
    N_LAUNCHERS,
};

/* The names of a record; NULL where the environment does not tell. */
struct record_names {
    enum launcher launcher;
    bool second;      /* the launcher has another record before it */
    const char *sign; /* its presence says that the launcher was here */
    const char *rank;
    const char *world_size;
    const char *local_rank;
    const char *local_world_size;
};

/* Every record, in order; some launchers have two. n_out: how many. */
const struct record_names *launcher_records(size_t *n_out);

/* "flaunch", "torchrun", ... "none" */
const char *launcher_name(enum launcher launcher);

/* The launcher of that name: true, or false where none has it. */
bool launcher_by_name(const char *name, enum launcher *launcher_out);

/* Whether open_flamingo's option "horovod" takes it: Horovod, or MPI's. */
bool launcher_is_mpi(enum launcher launcher);

#endif
