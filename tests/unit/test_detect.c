/*
 * Who started this process: captured environments of real launchers with their
 * true answers, the traps, half records and contradictions; and Slurm's lists.
 */
#include "common/hostlist.h"
#include "tests/unit/unit.h"
#include "worker/detect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An environment as one text, "A=1 B=2"; and the one descriptor that is a
 * socket in it. */
struct sample {
    const char *text;
    int socket;
};

static const char *sample_get(const char *name, void *arg)
{
    static char values[64][256];
    static int next;
    const char *at = ((const struct sample *)arg)->text;
    size_t len = strlen(name);

    while (*at != '\0') {
        size_t word = strcspn(at, " ");

        if (word > len && strncmp(at, name, len) == 0 && at[len] == '=') {
            char *value = values[next++ % 64];

            (void)snprintf(value, 256, "%.*s", (int)(word - len - 1),
                           at + len + 1);
            return value;
        }
        at += word;
        at += strspn(at, " ");
    }
    return NULL;
}

static bool sample_is_socket(int fd, void *arg)
{
    return fd == ((const struct sample *)arg)->socket;
}

static int detect_sample(const char *text, int socket,
                         const struct detect_wish *wish,
                         struct detected *detected_out,
                         struct flaunch_error *error)
{
    struct sample sample = { text, socket };
    struct environ_view view = { sample_get, sample_is_socket, &sample };

    return detect(&view, wish, detected_out, error);
}

#define FLAUNCH_ENV                                                            \
    "FLAUNCH_RUN_ID=none FLAUNCH_RANK=1 FLAUNCH_WORLD_SIZE=4 "                 \
    "FLAUNCH_LOCAL_RANK=1 FLAUNCH_LOCAL_WORLD_SIZE=4 "                         \
    "FLAUNCH_STORE=127.0.0.1:5000 "
#define TORCH_SAME                                                             \
    "TORCHELASTIC_RUN_ID=none RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 "               \
    "LOCAL_WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=5000 "               \
    "TORCHELASTIC_USE_AGENT_STORE=True "

/* mpirun of Open MPI 4.1.4, rank 1 of 2. */
#define OPENMPI_4                                                              \
    "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 "                           \
    "OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 "               \
    "OMPI_COMM_WORLD_NODE_RANK=1 OMPI_UNIVERSE_SIZE=2 "                        \
    "OMPI_MCA_orte_num_nodes=1 PMIX_NAMESPACE=1293942785 PMIX_RANK=1 "         \
    "PMIX_ID=1293942785.1 "
#define HYDRA                                                                  \
    "PMI_RANK=1 PMI_SIZE=2 PMI_FD=8 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 "      \
    "HYDI_CONTROL_FD=7 "
/* srun -N2 -n4, rank 3, alone on the second node. */
#define SLURM_UNEVEN                                                           \
    "SLURM_PROCID=3 SLURM_LOCALID=0 SLURM_NODEID=1 SLURM_NTASKS=4 "            \
    "SLURM_NPROCS=4 SLURM_NNODES=2 SLURM_GTIDS=3 SLURM_STEP_ID=0 "             \
    "SLURM_STEPID=0 SLURM_STEP_NODELIST=n[01-02] SLURM_STEP_NUM_NODES=2 "      \
    "SLURM_STEP_NUM_TASKS=4 SLURM_STEP_TASKS_PER_NODE=3,1 "                    \
    "SLURM_TASKS_PER_NODE=3,1 SLURM_NODELIST=n[01-02] SLURM_JOB_ID=1 "         \
    "SLURMD_NODENAME=n02 CUDA_VISIBLE_DEVICES=0,1 "
/* The body of a batch script, with -N2 --ntasks-per-node=2. */
#define SLURM_BATCH                                                            \
    "SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_GTIDS=0 "             \
    "SLURM_NTASKS=4 SLURM_NPROCS=4 SLURM_NTASKS_PER_NODE=2 SLURM_NNODES=2 "    \
    "SLURM_TASKS_PER_NODE=2(x2) SLURM_JOB_ID=2 "
#define SALLOC                                                                 \
    "SLURM_NTASKS=4 SLURM_NPROCS=4 SLURM_TASKS_PER_NODE=3,1 SLURM_JOB_ID=3 "   \
    "SLURM_JOB_NAME=interactive "
/* What hydra's proxies hand on: a step of one task per node. */
#define SLURM_PROXY                                                            \
    "SLURM_LOCALID=0 SLURM_NTASKS=4 SLURM_NPROCS=2 SLURM_STEP_ID=0 "           \
    "SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=1(x2) SLURM_JOB_ID=4 "
#define HOROVOD                                                                \
    "HOROVOD_RANK=1 HOROVOD_SIZE=2 HOROVOD_LOCAL_RANK=1 "                      \
    "HOROVOD_LOCAL_SIZE=2 HOROVOD_CROSS_RANK=0 HOROVOD_CROSS_SIZE=1 "          \
    "HOROVOD_HOSTNAME=localhost HOROVOD_CONTROLLER=gloo "                      \
    "HOROVOD_GLOO_RENDEZVOUS_ADDR=127.0.0.1 "                                  \
    "HOROVOD_GLOO_RENDEZVOUS_PORT=54600 NCCL_SOCKET_IFNAME=lo "

static const struct row {
    const char *env;
    int socket;
    enum launcher launcher;
    int rank;
    int world_size;
    int local_rank;
    int local_world_size;
    enum channel channel;
} rows[] = {
    { "", -1, LAUNCHER_NONE, 0, 1, 0, 1, CHANNEL_NONE },
    { FLAUNCH_ENV TORCH_SAME, -1, LAUNCHER_FLAUNCH, 1, 4, 1, 4, CHANNEL_STORE },
    { TORCH_SAME, -1, LAUNCHER_TORCHRUN, 1, 4, 1, 4, CHANNEL_STORE },
    /* torchrun inside a worker of flaunch: the inner one counts */
    { FLAUNCH_ENV "TORCHELASTIC_RUN_ID=none RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 "
                  "LOCAL_WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=77 "
                  "TORCHELASTIC_USE_AGENT_STORE=False",
      -1, LAUNCHER_TORCHRUN, 0, 2, 0, 2, CHANNEL_ADDRESS },
    /* the same place, but another store */
    { FLAUNCH_ENV "TORCHELASTIC_RUN_ID=none RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 "
                  "LOCAL_WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=5001",
      -1, LAUNCHER_TORCHRUN, 1, 4, 1, 4, CHANNEL_ADDRESS },
    { "RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=9", -1, LAUNCHER_ENV, 1, 2,
      0, 1, CHANNEL_ADDRESS },
    { "RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=h "
      "MASTER_PORT=9",
      -1, LAUNCHER_ENV, 3, 4, 1, 2, CHANNEL_ADDRESS },
    { "RANK=0 WORLD_SIZE=1", -1, LAUNCHER_ENV, 0, 1, 0, 1, CHANNEL_NONE },
    { "WORLD_SIZE=1", -1, LAUNCHER_NONE, 0, 1, 0, 1, CHANNEL_NONE },
    /* mpirun and hydra, alone */
    { OPENMPI_4, -1, LAUNCHER_OPENMPI, 1, 2, 1, 2, CHANNEL_PMIX },
    { HYDRA, 8, LAUNCHER_HYDRA, 1, 2, 1, 2, CHANNEL_PMI },
    { "PMI_ID=1 PMI_PORT=vm:37721 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2", -1,
      LAUNCHER_HYDRA, 1, 0, 1, 2, CHANNEL_PMI },
    /* srun: plain, pmi2, pmix */
    { SLURM_UNEVEN, -1, LAUNCHER_SLURM, 3, 4, 0, 1, CHANNEL_SLURM },
    { SLURM_UNEVEN "PMI_FD=11 PMI_JOBID=5.0 PMI_RANK=3 PMI_SIZE=4 "
                   "SLURM_MPI_TYPE=pmi2",
      11, LAUNCHER_SLURM, 3, 4, 0, 1, CHANNEL_PMI },
    { SLURM_UNEVEN "PMIX_NAMESPACE=slurm.pmix.10.0 PMIX_RANK=3 "
                   "SLURM_PMIX_MAPPING_SERV=(vector,(0,1,2)) "
                   "SLURM_MPI_TYPE=pmix",
      -1, LAUNCHER_SLURM, 3, 4, 0, 1, CHANNEL_PMIX },
    /* ... and with what scripts for open_flamingo export */
    { SLURM_UNEVEN "MASTER_ADDR=n01 MASTER_PORT=15000", -1, LAUNCHER_SLURM, 3,
      4, 0, 1, CHANNEL_ADDRESS },
    /* no step: batch script (with and without -n), salloc, interactive step */
    { SLURM_BATCH, -1, LAUNCHER_NONE, 0, 1, 0, 1, CHANNEL_NONE },
    { "SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_TASKS_PER_NODE=1(x2) "
      "SLURM_JOB_ID=1",
      -1, LAUNCHER_NONE, 0, 1, 0, 1, CHANNEL_NONE },
    { SALLOC, -1, LAUNCHER_NONE, 0, 1, 0, 1, CHANNEL_NONE },
    { SALLOC "SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_GTIDS=0 "
             "SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1 "
             "SLURM_STEP_NODELIST=n01 SLURM_STEP_NUM_NODES=1",
      -1, LAUNCHER_NONE, 0, 1, 0, 1, CHANNEL_NONE },
    /* sbatch and mpirun, 2 nodes of 2: first node, second node */
    { SLURM_BATCH OPENMPI_4, -1, LAUNCHER_OPENMPI, 1, 2, 1, 2, CHANNEL_PMIX },
    { "SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_NPROCS=1 SLURM_STEP_ID=0 "
      "SLURM_STEP_NUM_TASKS=1 SLURM_LOCALID=0 OMPI_COMM_WORLD_RANK=3 "
      "OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 "
      "OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=7 PMIX_RANK=3",
      -1, LAUNCHER_OPENMPI, 3, 4, 1, 2, CHANNEL_PMIX },
    /* salloc and mpirun */
    { "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_ID=0 "
      "SLURM_LOCALID=0 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 "
      "OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2 "
      "PMIX_NAMESPACE=7 PMIX_RANK=2",
      -1, LAUNCHER_OPENMPI, 2, 4, 0, 2, CHANNEL_PMIX },
    /* sbatch and hydra */
    { SLURM_PROXY "SLURM_PROCID=1 PMI_RANK=2 PMI_SIZE=4 PMI_FD=6 "
                  "MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2",
      6, LAUNCHER_HYDRA, 2, 4, 0, 2, CHANNEL_PMI },
    /* MpiDefault=pmi2: srun -n1 mpirun -n2, with a stale PMI record */
    { OPENMPI_4 "PMI_RANK=0 PMI_SIZE=1 PMI_FD=11 PMI_JOBID=12.0 "
                "SLURM_PROCID=0 SLURM_MPI_TYPE=pmi2",
      -1, LAUNCHER_OPENMPI, 1, 2, 1, 2, CHANNEL_PMIX },
    /* ... the number of which is somebody's socket by now */
    { OPENMPI_4 "PMI_RANK=0 PMI_SIZE=1 PMI_FD=11", 11, LAUNCHER_OPENMPI, 1, 2,
      1, 2, CHANNEL_PMIX },
    /* MpiDefault=pmi2, sbatch and hydra: PMI_JOBID is Slurm's and stale */
    { SLURM_PROXY "SLURM_PROCID=0 PMI_RANK=1 PMI_SIZE=4 PMI_FD=9 "
                  "PMI_JOBID=11.0 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2",
      9, LAUNCHER_HYDRA, 1, 4, 1, 2, CHANNEL_PMI },
    /* one step over two components of a heterogeneous job */
    { "SLURM_PROCID=2 SLURM_NTASKS=3 SLURM_LOCALID=1 SLURM_NODEID=1 "
      "SLURM_STEP_TASKS_PER_NODE=1,2 SLURM_HET_SIZE=2 SLURM_PACK_SIZE=2 "
      "SLURM_NTASKS_HET_GROUP_0=1 SLURM_NTASKS_HET_GROUP_1=2 "
      "SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=n[01-02] "
      "SLURM_JOB_ID=9",
      -1, LAUNCHER_SLURM, 2, 3, 1, 2, CHANNEL_SLURM },
    /* cyclic ranks: 1 and 3 on the second node */
    { "SLURM_PROCID=3 SLURM_LOCALID=1 SLURM_NODEID=1 SLURM_GTIDS=1,3 "
      "SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_ID=0 "
      "SLURM_STEP_NODELIST=n[01-02] SLURM_DISTRIBUTION=cyclic SLURM_JOB_ID=9",
      -1, LAUNCHER_SLURM, 3, 4, 1, 2, CHANNEL_SLURM },
    /* a step on the second of two nodes */
    { "SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=1 SLURM_STEP_NUM_TASKS=1 "
      "SLURM_STEP_ID=1 SLURM_STEP_NODELIST=n02 SLURM_NODELIST=n[01-02] "
      "SLURM_NNODES=1 SLURM_GTIDS=0 SLURM_JOB_ID=9",
      -1, LAUNCHER_SLURM, 0, 1, 0, 1, CHANNEL_NONE },
    /* no SLURM_GTIDS, which sites may take out */
    { "SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_NODEID=0 SLURM_STEP_NUM_TASKS=4 "
      "SLURM_NTASKS=4 SLURM_STEP_ID=0 SLURM_STEP_TASKS_PER_NODE=2(x2) "
      "SLURM_STEP_NODELIST=n[01-02] SLURM_JOB_ID=9",
      -1, LAUNCHER_SLURM, 1, 4, 1, 2, CHANNEL_SLURM },
    { "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_ID=0 SLURM_LOCALID=0",
      -1, LAUNCHER_SLURM, 0, 1, 0, 0, CHANNEL_NONE },
    /* torchrun 1.13, one agent per task of a step */
    { "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 GROUP_RANK=0 "
      "GROUP_WORLD_SIZE=1 MASTER_ADDR=localhost MASTER_PORT=43773 "
      "TORCHELASTIC_RUN_ID=5f TORCHELASTIC_RESTART_COUNT=0 "
      "TORCHELASTIC_MAX_RESTARTS=0 "
      "TORCHELASTIC_USE_AGENT_STORE=False " SLURM_UNEVEN,
      -1, LAUNCHER_TORCHRUN, 1, 2, 1, 2, CHANNEL_ADDRESS },
    /* --gpus-per-task=1: the place is the same, whatever is visible */
    { "SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_NODEID=0 SLURM_GTIDS=0,1 "
      "SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_ID=0 "
      "SLURM_STEP_NODELIST=n[01-02] CUDA_VISIBLE_DEVICES=1 "
      "SLURM_STEP_GPUS=1 SLURM_JOB_ID=9",
      -1, LAUNCHER_SLURM, 1, 4, 1, 2, CHANNEL_SLURM },
    /* Open MPI 5.0.7 */
    { "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 "
      "OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 "
      "OMPI_COMM_WORLD_NODE_RANK=1 OMPI_WORLD_SIZE=2 PRTE_LAUNCHED=1 "
      "PMIX_NAMESPACE=prterun-vm-517@1 PMIX_RANK=1",
      -1, LAUNCHER_OPENMPI, 1, 2, 1, 2, CHANNEL_PMIX },
    { HOROVOD, -1, LAUNCHER_HOROVOD, 1, 2, 1, 2, CHANNEL_HOROVOD },
    { "HOROVOD_RANK=3 HOROVOD_SIZE=6 HOROVOD_LOCAL_RANK=1 "
      "HOROVOD_LOCAL_SIZE=2 HOROVOD_CROSS_RANK=1 HOROVOD_CROSS_SIZE=3 "
      "HOROVOD_CONTROLLER=gloo HOROVOD_GLOO_RENDEZVOUS_ADDR=10.77.0.1 "
      "HOROVOD_GLOO_RENDEZVOUS_PORT=1025",
      -1, LAUNCHER_HOROVOD, 3, 6, 1, 2, CHANNEL_HOROVOD },
    /* horovodrun over mpirun leaves only settings of its own */
    { "HOROVOD_CONTROLLER=mpi " OPENMPI_4, -1, LAUNCHER_OPENMPI, 1, 2, 1, 2,
      CHANNEL_PMIX },
    /* Slurm 24.11 */
    { SLURM_UNEVEN "SLURM_SRUN_COMM_HOST=127.0.0.1 SLURM_STEP_LAUNCHER_PORT=1 "
                   "SLURM_OOM_KILL_STEP=0 SLURM_TOPOLOGY_ADDR=n02",
      -1, LAUNCHER_SLURM, 3, 4, 0, 1, CHANNEL_SLURM },
    /* by documentation only */
    { "JSM_NAMESPACE_RANK=1 JSM_NAMESPACE_SIZE=4 JSM_NAMESPACE_LOCAL_RANK=1 "
      "JSM_NAMESPACE_LOCAL_SIZE=2 PMIX_NAMESPACE=j PMIX_RANK=1",
      -1, LAUNCHER_JSRUN, 1, 4, 1, 2, CHANNEL_PMIX },
    { "FLUX_TASK_RANK=1 FLUX_JOB_SIZE=4 FLUX_TASK_LOCAL_ID=1 PMI_RANK=1 "
      "PMI_SIZE=4 PMI_FD=5 FLUX_JOB_ID=f1",
      5, LAUNCHER_FLUX, 1, 4, 1, 0, CHANNEL_PMI },
    { "PALS_RANKID=1 PALS_LOCAL_RANKID=1 PALS_NODEID=0 PMI_RANK=1 PMI_SIZE=4 "
      "PMI_LOCAL_RANK=1 PMI_LOCAL_SIZE=2 MASTER_ADDR=h MASTER_PORT=1",
      -1, LAUNCHER_PALS, 1, 4, 1, 2, CHANNEL_ADDRESS },
    { "MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=4 "
      "MV2_COMM_WORLD_LOCAL_RANK=1 MV2_COMM_WORLD_LOCAL_SIZE=2 "
      "PMI_PORT=h:9 PMI_ID=1",
      -1, LAUNCHER_MVAPICH, 1, 4, 1, 2, CHANNEL_PMI },
    { "MVP_COMM_WORLD_RANK=1 MVP_COMM_WORLD_SIZE=4 "
      "MVP_COMM_WORLD_LOCAL_RANK=1 MVP_COMM_WORLD_LOCAL_SIZE=2 PMI_FD=4",
      4, LAUNCHER_MVAPICH, 1, 4, 1, 2, CHANNEL_PMI },
    { "PRTE_LAUNCHED=1 PMIX_RANK=1 PMIX_NAMESPACE=p", -1, LAUNCHER_PRRTE, 1, 0,
      -1, 0, CHANNEL_PMIX },
    { "ALPS_APP_PE=3 PMI_FD=7", 7, LAUNCHER_APRUN, 3, 0, -1, 0, CHANNEL_PMI },
    /* half of a plain environment is no more than a hint */
    { "RANK=0 WORLD_SIZE=2 " HYDRA, 8, LAUNCHER_HYDRA, 1, 2, 1, 2,
      CHANNEL_PMI },
    /* whom the user names */
    { FLAUNCH_ENV TORCH_SAME "FLAUNCH_LAUNCHER=torchrun", -1, LAUNCHER_TORCHRUN,
      1, 4, 1, 4, CHANNEL_STORE },
    { FLAUNCH_ENV TORCH_SAME "FLAUNCH_LAUNCHER=env", -1, LAUNCHER_ENV, 1, 4, 1,
      4, CHANNEL_STORE },
    { FLAUNCH_ENV TORCH_SAME "FLAUNCH_LAUNCHER=none", -1, LAUNCHER_NONE, 0, 1,
      0, 1, CHANNEL_NONE },
    { SLURM_UNEVEN TORCH_SAME "FLAUNCH_LAUNCHER=slurm", -1, LAUNCHER_SLURM, 3,
      4, 0, 1, CHANNEL_ADDRESS },
    { "FLAUNCH_LAUNCHER=hydra PMI_ID=1 PMI_PORT=vm:37721 MPI_LOCALRANKID=1 "
      "MPI_LOCALNRANKS=2",
      -1, LAUNCHER_HYDRA, 1, 0, 1, 2, CHANNEL_PMI },
};

static void launchers_are_told_apart(void **state)
{
    const struct detect_wish nothing = { 0 };
    struct flaunch_error error;
    struct detected detected;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (detect_sample(rows[i].env, rows[i].socket, &nothing, &detected,
                          &error) < 0) {
            fail_msg("%s: %s", rows[i].env, error.text);
        }
        if (detected.launcher != rows[i].launcher ||
            detected.rank != rows[i].rank ||
            detected.world_size != rows[i].world_size ||
            detected.local_rank != rows[i].local_rank ||
            detected.local_world_size != rows[i].local_world_size ||
            detected.channel != rows[i].channel) {
            fail_msg("%s: %s %d of %d, local %d of %d, channel %d", rows[i].env,
                     launcher_name(detected.launcher), detected.rank,
                     detected.world_size, detected.local_rank,
                     detected.local_world_size, (int)detected.channel);
        }
        assert_true(detected.explanation[0] != '\0');
    }
}

static void half_records_and_contradictions_are_errors(void **state)
{
    static const struct {
        const char *env;
        const char *words;
    } broken[] = {
        { "RANK=0", "WORLD_SIZE is not set" },
        { "WORLD_SIZE=2", "WORLD_SIZE=2 says that this is one of several" },
        { "WORLD_SIZE=2", "RANK is not set" },
        { "RANK=0 WORLD_SIZE=2", "MASTER_ADDR is not set" },
        { "RANK=0 WORLD_SIZE=2 MASTER_ADDR=h", "MASTER_PORT is not set" },
        { "RANK=2 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=1", "RANK=2" },
        { "RANK=-1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=1", "RANK=-1" },
        { "RANK=1x WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=1", "RANK=1x" },
        { "RANK=0 WORLD_SIZE=0 MASTER_ADDR=h MASTER_PORT=1", "WORLD_SIZE=0" },
        { "RANK=0 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=0", "MASTER_PORT=0" },
        { "RANK=0 WORLD_SIZE=2 LOCAL_RANK=2 MASTER_ADDR=h MASTER_PORT=1",
          "LOCAL_RANK=2" },
        { "RANK=0 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=1 MASTER_ADDR=h "
          "MASTER_PORT=1",
          "LOCAL_WORLD_SIZE=1" },
        { "TORCHELASTIC_RUN_ID=x RANK=0 WORLD_SIZE=2 MASTER_ADDR=h "
          "MASTER_PORT=1",
          "LOCAL_RANK is not set" },
        { "FLAUNCH_LAUNCHER=lsf", "unknown launcher lsf" },
        { "FLAUNCH_LAUNCHER=torchrun", "torchrun was asked for" },
        { "FLAUNCH_LAUNCHER=env RANK=0 WORLD_SIZE=2",
          "env: MASTER_ADDR is not set" },
        /* one of several, but whose? */
        { "PMIX_RANK=2 PMIX_NAMESPACE=x", "PMIX_RANK=2 says" },
        { "PMI_RANK=0 PMI_SIZE=4 PMI_FD=11", "PMI_SIZE=4 says" },
        { "MV2_COMM_WORLD_RANK=0", "MV2_COMM_WORLD_SIZE is not set" },
        { SLURM_PROXY "SLURM_PROCID=1", "SLURM_NTASKS and" },
        { SLURM_UNEVEN "SLURM_X=1 FLAUNCH_LAUNCHER=hydra", "hydra was asked" },
        /* hydra's record with somebody else's descriptor */
        { HYDRA, "PMI_FD=8 is no open socket" },
        /* two that must agree */
        { "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 "
          "OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 "
          "PMIX_NAMESPACE=1 PMIX_RANK=0",
          "OMPI_COMM_WORLD_RANK and PMIX_RANK disagree" },
        { "PALS_RANKID=1 PALS_LOCAL_RANKID=1 PMI_RANK=2 PMI_SIZE=4",
          "disagree" },
        /* no way to meet */
        { "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 "
          "OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2",
          "set MASTER_ADDR and MASTER_PORT" },
        { "ALPS_APP_PE=0", "asked of PMI" },
        { SLURM_UNEVEN "MASTER_ADDR=n01 MASTER_PORT=15000x",
          "MASTER_PORT=15000x" },
        { "SLURM_STEP_ID=x SLURM_PROCID=0", "SLURM_STEP_ID=x" },
    };
    const struct detect_wish nothing = { 0 };
    struct flaunch_error error;
    struct detected detected;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        if (detect_sample(broken[i].env, -1, &nothing, &detected, &error) !=
            -EINVAL) {
            fail_msg("%s: taken for %s", broken[i].env,
                     launcher_name(detected.launcher));
        }
        if (strstr(error.text, broken[i].words) == NULL) {
            fail_msg("%s: %s", broken[i].env, error.text);
        }
    }
}

static void wishes_are_obeyed_or_refused(void **state)
{
    static const struct {
        const char *env;
        struct detect_wish wish;
        enum launcher launcher; /* where words is NULL */
        enum channel channel;
        const char *words;
    } wishes[] = {
        { FLAUNCH_ENV TORCH_SAME,
          { .launcher = "torchrun" },
          LAUNCHER_TORCHRUN,
          CHANNEL_STORE,
          NULL },
        { FLAUNCH_ENV TORCH_SAME,
          { .launcher = "none" },
          LAUNCHER_NONE,
          CHANNEL_NONE,
          NULL },
        /* the option beats the variable */
        { TORCH_SAME "FLAUNCH_LAUNCHER=none",
          { .launcher = "env" },
          LAUNCHER_ENV,
          CHANNEL_STORE,
          NULL },
        { TORCH_SAME,
          { .url = "env://" },
          LAUNCHER_TORCHRUN,
          CHANNEL_STORE,
          NULL },
        { "RANK=0 WORLD_SIZE=2",
          { .url = "tcp://h:12" },
          LAUNCHER_ENV,
          CHANNEL_ADDRESS,
          NULL },
        { "RANK=0 WORLD_SIZE=2",
          { .url = "tcp://[::1]:12" },
          LAUNCHER_ENV,
          CHANNEL_ADDRESS,
          NULL },
        { "RANK=0 WORLD_SIZE=2",
          { .url = "file:///tmp/x" },
          LAUNCHER_ENV,
          CHANNEL_FILE,
          NULL },
        { SLURM_UNEVEN,
          { .url = "tcp://h:12" },
          LAUNCHER_SLURM,
          CHANNEL_ADDRESS,
          NULL },
        { "RANK=0 WORLD_SIZE=2", { .url = "tcp://h" }, 0, 0, "no HOST:PORT" },
        { "RANK=0 WORLD_SIZE=2", { .url = "file://x" }, 0, 0, "file:///PATH" },
        { "RANK=0 WORLD_SIZE=2", { .url = "http://x" }, 0, 0, "http://x" },
        /* horovod: Horovod's or MPI's record, else an error */
        { HOROVOD,
          { .horovod = true },
          LAUNCHER_HOROVOD,
          CHANNEL_HOROVOD,
          NULL },
        { TORCH_SAME OPENMPI_4,
          { .horovod = true },
          LAUNCHER_OPENMPI,
          CHANNEL_PMIX,
          NULL },
        { TORCH_SAME, { .horovod = true }, 0, 0, "the option horovod is set" },
        { SLURM_UNEVEN,
          { .horovod = true },
          0,
          0,
          "the option horovod is set" },
        { "", { .horovod = true }, 0, 0, "the option horovod is set" },
        { "HOROVOD_CONTROLLER=gloo HOROVOD_RANK=0",
          { .horovod = true },
          0,
          0,
          "HOROVOD_CROSS_RANK" },
    };
    struct flaunch_error error;
    struct detected detected;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
        int rc = detect_sample(wishes[i].env, -1, &wishes[i].wish, &detected,
                               &error);

        if (wishes[i].words != NULL) {
            assert_int_equal(rc, -EINVAL);
            if (strstr(error.text, wishes[i].words) == NULL) {
                fail_msg("%zu: %s", i, error.text);
            }
            continue;
        }
        if (rc < 0) {
            fail_msg("%zu: %s", i, error.text);
        }
        assert_int_equal(detected.launcher, wishes[i].launcher);
        assert_int_equal(detected.channel, wishes[i].channel);
    }
}

static void all_that_was_found_is_explained(void **state)
{
    const struct detect_wish nothing = { 0 };
    struct flaunch_error error;
    struct detected detected;

    (void)state;
    assert_int_equal(detect_sample(TORCH_SAME OPENMPI_4 SLURM_BATCH, -1,
                                   &nothing, &detected, &error),
                     0);
    assert_non_null(strstr(detected.explanation,
                           "torchrun: chosen; rank 1 of 4, local rank 1 of 4, "
                           "store 127.0.0.1 port 5000\n"));
    assert_non_null(
        strstr(detected.explanation, "openmpi: whole as well: rank 1 of 2"));
    assert_non_null(
        strstr(detected.explanation, "slurm: an allocation and no step"));
}

static void steps_have_a_place_of_their_own(void **state)
{
    const struct detect_wish nothing = { 0 };
    struct detected first;
    struct detected other;

    (void)state;
    assert_int_equal(detect_sample(SLURM_UNEVEN, -1, &nothing, &first, NULL),
                     0);
    assert_string_equal(first.host, "n01");
    assert_true(first.port >= 15000 && first.port + first.n_ports < 32768);
    assert_int_equal(detect_sample("SLURM_PROCID=1 SLURM_LOCALID=0 "
                                   "SLURM_STEP_ID=1 SLURM_STEP_NUM_TASKS=2 "
                                   "SLURM_STEP_NODELIST=gpu[1-2]-ib[0-1] "
                                   "SLURM_JOB_ID=1",
                                   -1, &nothing, &other, NULL),
                     0);
    assert_string_equal(other.host, "gpu1-ib0");
    assert_string_not_equal(first.token, other.token);
    assert_int_equal(detect_sample("SLURM_PROCID=1 SLURM_LOCALID=0 "
                                   "SLURM_STEP_ID=1 SLURM_STEP_NUM_TASKS=2 "
                                   "SLURM_STEP_NODELIST=n[3],m[4-5] "
                                   "SLURM_STEP_RESV_PORTS=12000-12003",
                                   -1, &nothing, &other, NULL),
                     0);
    assert_string_equal(other.host, "n3");
    assert_int_equal(other.port, 12000);
    assert_int_equal(other.n_ports, 4);
}

static int append_name(const char *name, void *arg)
{
    char *text = arg;

    (void)snprintf(text + strlen(text), 200 - strlen(text), "%s ", name);
    return 0;
}

static void node_lists_are_expanded_as_slurm_does(void **state)
{
    static const struct {
        const char *list;
        const char *names; /* NULL: refused */
    } lists[] = {
        { "n1", "n1 " },
        { "n[008-011]", "n008 n009 n010 n011 " },
        { "n[001-3]", "n001 n002 n003 " },
        { "n[1,3-4],m5", "n1 n3 n4 m5 " },
        { "rack[0-1]n[1-2]", "rack0n1 rack0n2 rack1n1 rack1n2 " },
        { "gpu[1-2]-ib[0-1]", "gpu1-ib0 gpu1-ib1 gpu2-ib0 gpu2-ib1 " },
        { "n[3],m[4-5]", "n3 m4 m5 " },
        { "a[9-11]x", NULL },
        { "n[1-2]-x", NULL },
        { "n[2-1]", NULL },
        { "n[]", NULL },
        { "n[1", NULL },
        { "n1]", NULL },
        { "n[[1]]", NULL },
        { "n[1,,2]", NULL },
        { "n[1-2-3]", NULL },
        { "n[x]", NULL },
        { "", NULL },
        { "a,,b", NULL },
        { "n[0-999999999]", NULL },
        { "n[1-300]m[1-300]", NULL },
        { "n[99999999999999999999]", NULL },
    };
    char name[HOSTLIST_NAME_MAX];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        char names[200] = "";
        int rc = hostlist_walk(lists[i].list, append_name, names);

        assert_int_equal(rc < 0, lists[i].names == NULL);
        if (lists[i].names != NULL) {
            assert_string_equal(names, lists[i].names);
            assert_int_equal(hostlist_first(lists[i].list, name), 0);
            assert_int_equal(strncmp(names, name, strlen(name)), 0);
        }
    }
}

static void counts_are_read_as_slurm_writes_them(void **state)
{
    int64_t count = 0;

    (void)state;
    assert_int_equal(hostlist_count_at("2(x3),1", 0, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(hostlist_count_at("2(x3),1", 2, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(hostlist_count_at("2(x3),1", 3, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(hostlist_count_at("2(x3),1", 4, &count), -ERANGE);
    assert_int_equal(hostlist_count_at("", 0, &count), -EINVAL);
    assert_int_equal(hostlist_count_at("2(x", 0, &count), -EINVAL);
    assert_int_equal(hostlist_count_at("2x", 0, &count), -EINVAL);
    assert_int_equal(hostlist_count_at("2,", 1, &count), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers_are_told_apart),
        cmocka_unit_test(half_records_and_contradictions_are_errors),
        cmocka_unit_test(wishes_are_obeyed_or_refused),
        cmocka_unit_test(all_that_was_found_is_explained),
        cmocka_unit_test(steps_have_a_place_of_their_own),
        cmocka_unit_test(node_lists_are_expanded_as_slurm_does),
        cmocka_unit_test(counts_are_read_as_slurm_writes_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
