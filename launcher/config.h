/*
 * What this run is to do: options checked and turned into values. Read-only
 * once running.
 */
#ifndef FLAUNCH_LAUNCHER_CONFIG_H
#define FLAUNCH_LAUNCHER_CONFIG_H

#include "common/err.h"
#include "common/store_conf.h"
#include "launcher/affinity.h"
#include "launcher/command.h"
#include "launcher/guard_proto.h"
#include "launcher/nodes.h"
#include "launcher/nproc.h"
#include "launcher/options.h"
#include "launcher/stream_plan.h"
#include "launcher/worker_env.h"

#include <stdint.h>

#define FORWARD_MAX 16

struct config {
    struct nodes nodes;
    struct store_conf store;
    uint32_t n_workers;         /* on this node */
    uint32_t stdin_rank;        /* or GUARD_STDIN_NONE, GUARD_STDIN_ALL */
    bool stacks;                /* of the workers, at a time limit */
    bool events;                /* told as JSON */
    bool timers;                /* of the workers: torchrun's watchdog */
    const char *health;         /* where to answer, or NULL */
    bool macros;                /* ${local_rank} in the arguments */
    bool pidns;                 /* the guard in a PID namespace */
    const char *keep_processes; /* names, "": none */
    uint64_t shutdown_ms;       /* between a stop and SIGKILL; 0: none */
    uint64_t backoff_ms;        /* the first; 0: never wait */
    uint64_t timeout_ms;        /* of the whole job; 0: none */
    uint64_t spread_ms;        /* from the first good end to the last; 0: any */
    int stop[FORWARD_MAX + 2]; /* signals that stop the job, 0 at the end */
    int forward[FORWARD_MAX + 1]; /* signals to pass on, 0 at the end */
    struct job_env job;           /* what a round decides is filled in then */
    struct log_config log;
    struct command command;
    char **program; /* as given */
    char **gpus;    /* --virtual-local-rank: of each worker; or NULL */
    struct cpu_masks binding;
};

/* What config_resolve asks of the machine, if it needs to know; tests give
 * their own. */
struct machine {
    unsigned (*n_cpus)(void);
    unsigned (*n_gpus)(void);
    struct environ_view environ; /* what schedulers say */
    const char *hostname;
    const char *new_run_id; /* see nodes_resolve */
    /* See binding_make. */
    int (*bind)(enum affinity_mode mode, const char *visible,
                uint32_t n_workers, struct cpu_masks *masks_out,
                struct err *err);
};

/*
 * Check and resolve. Returns 0 or a negative errno with a sentence; the exit
 * code for it is in exit_code_out: 2 for the command line, 126 or 127 for the
 * program.
 */
int config_resolve(const struct options *options, const struct machine *machine,
                   struct config *config_out, int *exit_code_out,
                   struct err *err);

void config_destroy(struct config *config);

#endif
