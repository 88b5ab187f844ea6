#include "worker/launchers.h"

#include "common/env_names.h"

#include <string.h>

static const struct record_names records[] = {
    { LAUNCHER_FLAUNCH, false, ENV_FLAUNCH_RUN_ID, ENV_FLAUNCH_RANK,
      ENV_FLAUNCH_WORLD_SIZE, ENV_FLAUNCH_LOCAL_RANK,
      ENV_FLAUNCH_LOCAL_WORLD_SIZE },
    { LAUNCHER_TORCHRUN, false, ENV_RUN_ID, ENV_RANK, ENV_WORLD_SIZE,
      ENV_LOCAL_RANK, ENV_LOCAL_WORLD_SIZE },
    { LAUNCHER_HOROVOD, false, "HOROVOD_CONTROLLER", "HOROVOD_RANK",
      "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE" },
    { LAUNCHER_ENV, false, ENV_RANK, ENV_RANK, ENV_WORLD_SIZE, ENV_LOCAL_RANK,
      ENV_LOCAL_WORLD_SIZE },
    { LAUNCHER_OPENMPI, false, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_RANK",
      "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
      "OMPI_COMM_WORLD_LOCAL_SIZE" },
    { LAUNCHER_JSRUN, false, "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_RANK",
      "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK",
      "JSM_NAMESPACE_LOCAL_SIZE" },
    { LAUNCHER_FLUX, false, "FLUX_TASK_RANK", "FLUX_TASK_RANK", "FLUX_JOB_SIZE",
      "FLUX_TASK_LOCAL_ID", NULL },
    { LAUNCHER_PALS, false, "PALS_RANKID", "PALS_RANKID", "PMI_SIZE",
      "PALS_LOCAL_RANKID", "PMI_LOCAL_SIZE" },
    { LAUNCHER_MVAPICH, false, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK",
      "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
      "MV2_COMM_WORLD_LOCAL_SIZE" },
    { LAUNCHER_MVAPICH, true, "MVP_COMM_WORLD_RANK", "MVP_COMM_WORLD_RANK",
      "MVP_COMM_WORLD_SIZE", "MVP_COMM_WORLD_LOCAL_RANK",
      "MVP_COMM_WORLD_LOCAL_SIZE" },
    { LAUNCHER_HYDRA, false, "MPI_LOCALRANKID", "PMI_RANK", "PMI_SIZE",
      "MPI_LOCALRANKID", "MPI_LOCALNRANKS" },
    /* hydra -pmi-port: the server tells the size. */
    { LAUNCHER_HYDRA, true, "PMI_PORT", "PMI_ID", NULL, "MPI_LOCALRANKID",
      "MPI_LOCALNRANKS" },
    { LAUNCHER_PRRTE, false, "PRTE_LAUNCHED", "PMIX_RANK", NULL, NULL, NULL },
    { LAUNCHER_SLURM, false, "SLURM_STEP_ID", "SLURM_PROCID",
      "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL },
    { LAUNCHER_APRUN, false, "ALPS_APP_PE", "ALPS_APP_PE", NULL, NULL, NULL },
};

static const char *const names[N_LAUNCHERS] = {
    "none", "flaunch", "torchrun", "horovod", "env",   "openmpi", "jsrun",
    "flux", "pals",    "mvapich",  "hydra",   "prrte", "slurm",   "aprun",
};

const struct record_names *launcher_records(size_t *n_out)
{
    *n_out = sizeof(records) / sizeof(records[0]);
    return records;
}

const char *launcher_name(enum launcher launcher)
{
    return names[launcher];
}

bool launcher_by_name(const char *name, enum launcher *launcher_out)
{
    int i;

    for (i = 0; i < N_LAUNCHERS; i++) {
        if (strcmp(name, names[i]) == 0) {
            *launcher_out = (enum launcher)i;
            return true;
        }
    }
    return false;
}

bool launcher_is_mpi(enum launcher launcher)
{
    switch (launcher) {
    case LAUNCHER_HOROVOD:
    case LAUNCHER_OPENMPI:
    case LAUNCHER_JSRUN:
    case LAUNCHER_PALS:
    case LAUNCHER_MVAPICH:
    case LAUNCHER_HYDRA:
    case LAUNCHER_PRRTE:
    case LAUNCHER_APRUN:
        return true;
    default:
        return false;
    }
}
