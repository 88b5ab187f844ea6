/*
 * Every environment variable we read or set, one row each.
 */
#ifndef FLAUNCH_COMMON_ENV_NAMES_H
#define FLAUNCH_COMMON_ENV_NAMES_H

/* torchrun's, set for each worker */
#define ENV_RANK "RANK"                         /* among all workers */
#define ENV_WORLD_SIZE "WORLD_SIZE"             /* number of workers */
#define ENV_LOCAL_RANK "LOCAL_RANK"             /* among this node's */
#define ENV_LOCAL_WORLD_SIZE "LOCAL_WORLD_SIZE" /* workers on this node */
#define ENV_GROUP_RANK "GROUP_RANK"             /* number of this node */
#define ENV_GROUP_WORLD_SIZE "GROUP_WORLD_SIZE" /* number of nodes */
#define ENV_ROLE_NAME "ROLE_NAME"               /* --role */
#define ENV_ROLE_RANK "ROLE_RANK"               /* among workers of the role */
#define ENV_ROLE_WORLD_SIZE "ROLE_WORLD_SIZE"
#define ENV_MASTER_ADDR "MASTER_ADDR" /* host of the store */
#define ENV_MASTER_PORT "MASTER_PORT" /* its port */
#define ENV_RESTART_COUNT "TORCHELASTIC_RESTART_COUNT"
#define ENV_MAX_RESTARTS "TORCHELASTIC_MAX_RESTARTS"
#define ENV_RUN_ID "TORCHELASTIC_RUN_ID"                   /* --rdzv-id */
#define ENV_USE_AGENT_STORE "TORCHELASTIC_USE_AGENT_STORE" /* True */
#define ENV_ERROR_FILE "TORCHELASTIC_ERROR_FILE" /* why a worker failed */
#define ENV_LOG_LINE_PREFIX "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"
#define ENV_SIGNALS_TO_HANDLE "TORCHELASTIC_SIGNALS_TO_HANDLE"
#define ENV_NCCL_ASYNC "TORCH_NCCL_ASYNC_ERROR_HANDLING"
#define ENV_SHUTDOWN_TIMEOUT "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
#define ENV_ENABLE_FILE_TIMER "TORCHELASTIC_ENABLE_FILE_TIMER" /* 1: on */
#define ENV_TIMER_FILE "TORCHELASTIC_TIMER_FILE" /* the watchdog's FIFO */
#define ENV_HEALTH_CHECK_PORT "TORCHELASTIC_HEALTH_CHECK_PORT"
#define ENV_OMP_NUM_THREADS "OMP_NUM_THREADS"
#define ENV_PYTHONUNBUFFERED "PYTHONUNBUFFERED"
#define ENV_PYTHON_EXEC "PYTHON_EXEC" /* the interpreter for .py and -m */
#define ENV_CUDA_VISIBLE_DEVICES "CUDA_VISIBLE_DEVICES"

/* Kubernetes: the number of an Indexed Job's pod */
#define ENV_JOB_COMPLETION_INDEX "JOB_COMPLETION_INDEX"

/* systemd's, for flaunch --store-only: sockets that the parent left */
#define ENV_LISTEN_PID "LISTEN_PID" /* whom they are for */
#define ENV_LISTEN_FDS "LISTEN_FDS" /* how many, from descriptor 3 on */

/* ours, set for each worker */
#define ENV_FLAUNCH_RUN_ID "FLAUNCH_RUN_ID"
#define ENV_FLAUNCH_RANK "FLAUNCH_RANK"
#define ENV_FLAUNCH_WORLD_SIZE "FLAUNCH_WORLD_SIZE"
#define ENV_FLAUNCH_LOCAL_RANK "FLAUNCH_LOCAL_RANK"
#define ENV_FLAUNCH_LOCAL_WORLD_SIZE "FLAUNCH_LOCAL_WORLD_SIZE"
#define ENV_FLAUNCH_NODE_RANK "FLAUNCH_NODE_RANK"
#define ENV_FLAUNCH_NNODES "FLAUNCH_NNODES"
#define ENV_FLAUNCH_ATTEMPT "FLAUNCH_ATTEMPT" /* counted from 0 */
#define ENV_FLAUNCH_STORE "FLAUNCH_STORE"     /* host:port */

/* read by libflaunch */
#define ENV_FLAUNCH_LAUNCHER "FLAUNCH_LAUNCHER"         /* whom to believe */
#define ENV_FLAUNCH_INIT_TIMEOUT "FLAUNCH_INIT_TIMEOUT" /* seconds */
#define ENV_FLAUNCH_DEBUG "FLAUNCH_DEBUG"               /* env, detail */

#endif
