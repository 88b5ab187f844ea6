#include "launcher/config.h"

#include "common/env_names.h"
#include "common/parse.h"
#include "launcher/exit_status.h"
#include "launcher/gpu_share.h"
#include "launcher/signal_names.h"
#include "launcher/store_options.h"
#include "launcher/torchrun_options.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of --stdin, with several nodes: how many ranks there are is not known yet. */
#define STDIN_RANK_MAX (GUARD_STDIN_ALL - 1)

static int resolve_nproc(const struct options *options,
                         const struct machine *machine, uint32_t n_gpus,
                         uint32_t *n_out, struct err *err)
{
    const char *text = options->values[OPT_NPROC_PER_NODE].text;
    bool a_word = text[0] >= 'a' && text[0] <= 'z';

    if (options->values[OPT_NPROC_PER_NODE].source == FROM_DEFAULT &&
        n_gpus > 0) {
        *n_out = n_gpus; /* as Slurm says */
        return 0;
    }
    /* To count takes longer than to start a worker: not for a number. */
    return nproc_resolve(options, a_word ? machine->n_cpus() : 1,
                         a_word ? machine->n_gpus() : 0, n_out, err);
}

static int resolve_seconds(const struct options *options, enum option_id id,
                           uint64_t *ms_out, struct err *err)
{
    const char *text = options->values[id].text;

    if (parse_seconds(text, ms_out) < 0) {
        return options_bad(options, id, "give seconds, such as 30 or 0.5", err);
    }
    return 0;
}

/* --shutdown-timeout; torchrun's variable stands behind it. */
static int resolve_shutdown(const struct options *options, uint64_t *ms_out,
                            struct err *err)
{
    const char *torchrun = getenv(ENV_SHUTDOWN_TIMEOUT);

    if (options->values[OPT_SHUTDOWN_TIMEOUT].source != FROM_DEFAULT ||
        torchrun == NULL) {
        return resolve_seconds(options, OPT_SHUTDOWN_TIMEOUT, ms_out, err);
    }
    if (parse_seconds(torchrun, ms_out) < 0) {
        return err_set(err, -EINVAL, "%s=%s: give seconds, such as 30 or 0.5",
                       ENV_SHUTDOWN_TIMEOUT, torchrun);
    }
    return 0;
}

static int resolve_stdin(const struct options *options, uint32_t max_rank,
                         uint32_t *rank_out, struct err *err)
{
    const char *text = options->values[OPT_STDIN].text;
    int64_t rank;

    if (strcmp(text, "none") == 0) {
        *rank_out = GUARD_STDIN_NONE;
    } else if (strcmp(text, "all") == 0) {
        *rank_out = GUARD_STDIN_ALL;
    } else if (parse_int(text, 0, max_rank, &rank) == 0) {
        *rank_out = (uint32_t)rank;
    } else {
        char want[64];

        (void)snprintf(want, sizeof(want),
                       "give none, all, or a rank from 0 to %u", max_rank);
        return options_bad(options, OPT_STDIN, want, err);
    }
    return 0;
}

static int resolve_restarts(const struct options *options, uint32_t *n_out,
                            struct err *err)
{
    int64_t n;

    if (parse_python_int(options->values[OPT_MAX_RESTARTS].text, 0, INT64_MAX,
                         &n) < 0) {
        return options_bad(options, OPT_MAX_RESTARTS, "give a number from 0",
                           err);
    }
    /* Of a second each they would take longer than any job. */
    *n_out = n < INT32_MAX ? (uint32_t)n : INT32_MAX;
    return 0;
}

/* What no option may name: it cannot be caught, or has a meaning of its own. */
static bool is_ours_alone(int signo)
{
    static const int ours[] = {
        SIGKILL, SIGSTOP, SIGCHLD, SIGCONT, SIGTSTP, 0
    };

    return signal_list_has(ours, signo);
}

/* A comma list of signals; those of without, 0 at its end, are left out. */
static int resolve_signals(const struct options *options, enum option_id id,
                           const int *without, int *list, struct err *err)
{
    const char *cursor = options->values[id].text;
    bool given = options->values[id].source != FROM_DEFAULT;
    const char *item;
    size_t n = 0;
    size_t len;

    while (parse_list_next(&cursor, &item, &len)) {
        int signo = signal_number(item, len);

        if (len == 0) {
            continue;
        }
        if (signo == 0 || is_ours_alone(signo) || n == FORWARD_MAX ||
            (given && signal_list_has(without, signo))) {
            return err_set(err, -EINVAL,
                           "--%s: %.*s cannot be used here; give names such "
                           "as USR1,USR2",
                           option_table[id].name, (int)len, item);
        }
        if (!signal_list_has(without, signo)) {
            list[n++] = signo;
            list[n] = 0;
        }
    }
    list[n] = 0;
    return 0;
}

/* Who stops the job, TERM in any case, and what is passed on. */
static int resolve_signal_lists(const struct options *options,
                                struct config *config, struct err *err)
{
    static const int nothing[] = { 0 };
    int rc = resolve_signals(options, OPT_SIGNALS_TO_HANDLE, nothing,
                             config->stop, err);
    size_t n = 0;

    if (rc < 0) {
        return rc;
    }
    if (!signal_list_has(config->stop, SIGTERM)) {
        while (config->stop[n] != 0) {
            n++;
        }
        config->stop[n++] = SIGTERM;
        config->stop[n] = 0;
    }
    return resolve_signals(options, OPT_FORWARD_SIGNALS, config->stop,
                           config->forward, err);
}

/* Every time and count. */
static int resolve_limits(const struct options *options, struct config *config,
                          struct err *err)
{
    int rc = resolve_shutdown(options, &config->shutdown_ms, err);

    if (rc == 0) {
        rc = resolve_restarts(options, &config->job.max_restarts, err);
    }
    if (rc == 0) {
        rc = resolve_seconds(options, OPT_RESTART_BACKOFF, &config->backoff_ms,
                             err);
    }
    if (rc == 0) {
        rc = resolve_seconds(options, OPT_TIMEOUT, &config->timeout_ms, err);
    }
    if (rc == 0) {
        rc = resolve_seconds(options, OPT_MAX_SPREAD, &config->spread_ms, err);
    }
    if (rc == 0) {
        rc = resolve_signal_lists(options, config, err);
    }
    return rc;
}

/*
 * One thread per worker and core, as torchrun does not: it says 1, which
 * leaves most of a machine idle. What the user set is never touched.
 */
static uint32_t omp_threads(uint32_t n_workers, const struct machine *machine)
{
    unsigned n_cpus;

    if (n_workers < 2 || getenv(ENV_OMP_NUM_THREADS) != NULL) {
        return 0;
    }
    n_cpus = machine->n_cpus();
    return n_cpus > n_workers ? n_cpus / n_workers : 1;
}

static int resolve_command(const struct options *options, struct config *config,
                           int *exit_code_out, struct err *err)
{
    struct command_request request = {
        .program = options->program,
        .module = options_flag(options, OPT_MODULE),
        .no_python = options_flag(options, OPT_NO_PYTHON),
        .run_path = options_flag(options, OPT_RUN_PATH),
        .macros = options_flag(options, OPT_EXPAND_MACROS),
        .path_env = getenv("PATH"),
        .python_exec = getenv(ENV_PYTHON_EXEC),
    };
    int rc = command_resolve(&request, &config->command, err);

    if (rc < 0 && rc != -EINVAL) {
        *exit_code_out = exit_status_of_exec(-rc);
    }
    return rc;
}

/* Which CPUs and which GPUs each worker sees. */
static int resolve_share(const struct options *options,
                         const struct machine *machine, struct config *config,
                         struct err *err)
{
    const char *binding = options->values[OPT_NUMA_BINDING].text;
    const char *visible = getenv(ENV_CUDA_VISIBLE_DEVICES);
    enum affinity_mode mode;

    if (binding != NULL) {
        int rc = affinity_mode_parse(binding, &mode);

        if (rc < 0) {
            return options_bad(options, OPT_NUMA_BINDING,
                               "give node, socket, exclusive or core-complex",
                               err);
        }
        rc = machine->bind(mode, visible, config->n_workers, &config->binding,
                           err);
        if (rc < 0) {
            return rc;
        }
    }
    config->job.own_gpus = options_flag(options, OPT_VIRTUAL_LOCAL_RANK);
    return config->job.own_gpus
               ? gpu_share_make(visible, config->n_workers, &config->gpus, err)
               : 0;
}

static bool is_on(const char *text)
{
    return text != NULL && strcmp(text, "1") == 0;
}

/* What does not go together, and what has to be right without effect. */
static int check_options(const struct options *options, struct err *err)
{
    if (options->program[0] == NULL) {
        return err_set(err, -EINVAL,
                       "no program given; flaunch --help shows how");
    }
    if (options_flag(options, OPT_MODULE) &&
        options_flag(options, OPT_NO_PYTHON)) {
        return err_set(err, -EINVAL,
                       "--module and --no-python exclude each other");
    }
    if (options_flag(options, OPT_PIDNS) &&
        options->values[OPT_KEEP_PROCESSES].text[0] != '\0') {
        return err_set(err, -EINVAL,
                       "--pidns ends every process: it excludes "
                       "--keep-processes");
    }
    return torchrun_options_check(options, err);
}

/* What needs neither the number of workers nor the program. */
static int resolve_job(const struct options *options,
                       const struct machine *machine, struct config *config,
                       struct err *err)
{
    enum event_log log = EVENT_LOG_NONE;
    int rc = check_options(options, err);

    rc = rc == 0 ? torchrun_options_events(options, &log, err) : rc;
    rc = rc == 0 ? nodes_resolve(options, &machine->environ, machine->hostname,
                                 machine->new_run_id, &config->nodes, err)
                 : rc;
    rc = rc == 0 ? store_options_resolve(options, &config->store, err) : rc;
    config->events = log == EVENT_LOG_CONSOLE;
    return rc == 0 ? resolve_limits(options, config, err) : rc;
}

/* What each worker is and gets. */
static int resolve_workers(const struct options *options,
                           const struct machine *machine, struct config *config,
                           struct err *err)
{
    const struct nodes *nodes = &config->nodes;
    int rc =
        resolve_nproc(options, machine, nodes->n_gpus, &config->n_workers, err);

    rc = rc == 0 ? resolve_stdin(options,
                                 nodes->max == 1 ? config->n_workers - 1
                                                 : STDIN_RANK_MAX,
                                 &config->stdin_rank, err)
                 : rc;
    rc = rc == 0
             ? log_config_resolve(options, config->n_workers, &config->log, err)
             : rc;
    return rc == 0 ? resolve_share(options, machine, config, err) : rc;
}

int config_resolve(const struct options *options, const struct machine *machine,
                   struct config *config_out, int *exit_code_out,
                   struct err *err)
{
    struct config config = {
        .program = options->program,
        .pidns = options_flag(options, OPT_PIDNS),
        .stacks = options_flag(options, OPT_STACKS),
        .timers = is_on(getenv(ENV_ENABLE_FILE_TIMER)),
        .health = getenv(ENV_HEALTH_CHECK_PORT),
        .macros = options_flag(options, OPT_EXPAND_MACROS),
        .keep_processes = options->values[OPT_KEEP_PROCESSES].text,
        .job = { .round = 1,
                 .role = options->values[OPT_ROLE].text,
                 .signals = options->values[OPT_SIGNALS_TO_HANDLE].text,
                 .keep_env = options_flag(options, OPT_KEEP_ENV) },
    };
    int rc = resolve_job(options, machine, &config, err);

    *exit_code_out = EXIT_USAGE;
    rc = rc == 0 ? resolve_workers(options, machine, &config, err) : rc;
    rc = rc == 0 ? resolve_command(options, &config, exit_code_out, err) : rc;
    if (rc < 0) {
        config_destroy(&config);
        return rc;
    }
    config.job.omp_num_threads = omp_threads(config.n_workers, machine);
    config.job.master_addr =
        config.nodes.max == 1 ? "127.0.0.1" : config_out->nodes.address;
    config.job.master_port = config.nodes.port;
    *config_out = config;
    config_out->job.run_id = nodes_run_id(&config_out->nodes);
    return 0;
}

void config_destroy(struct config *config)
{
    command_destroy(&config->command);
    cpu_masks_destroy(&config->binding);
    gpu_share_destroy(config->gpus, config->n_workers);
    log_config_destroy(&config->log);
}
