/*
 * flaunch: start-up and shutdown as a list of steps.
 */
#include "common/log.h"
#include "common/parse.h"
#include "common/env_names.h"
#include "launcher/agent.h"
#include "launcher/binding.h"
#include "launcher/completion.h"
#include "launcher/cpu_count.h"
#include "launcher/elf_needs.h"
#include "launcher/error_report.h"
#include "launcher/exit_status.h"
#include "launcher/explain.h"
#include "launcher/fds.h"
#include "launcher/gpu_count.h"
#include "launcher/rdzv.h"
#include "launcher/run_dir.h"
#include "launcher/store_only.h"
#include "launcher/terminal.h"
#include "launcher/timer_fifo.h"
#include "launcher/uuid.h"
#include "common/version.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Descriptors of ours beside those of each worker: two store connections (old
 * PyTorch opens two), two for its output. */
#define FDS_OF_OURS 64
#define FDS_OF_WORKER 4ULL

static const char *env_get(const char *name, void *arg)
{
    (void)arg;
    return getenv(name);
}

static unsigned machine_gpus(void)
{
    return gpu_count("", getenv(ENV_CUDA_VISIBLE_DEVICES));
}

/*
 * It ends before a job began; whoever started us learns why in the error file
 * that it may have asked for, but for mistakes of the command line, as under
 * torchrun.
 */
static int fail(int exit_code, const struct err *err)
{
    const char *path = getenv(ENV_ERROR_FILE);
    struct err trouble = { 0 };

    log_line(LOG_ERROR, "%s", err->text);
    if (path != NULL && path[0] != '\0' && exit_code != EXIT_USAGE &&
        error_report_write_failure(path, err->text, exit_code, &trouble) < 0) {
        log_line(LOG_WARN, "%s", trouble.text);
    }
    return exit_code;
}

/* FLAUNCH_DEBUG=detail: what happens inside. */
static void debug_prepare(void)
{
    const char *cursor = getenv(ENV_FLAUNCH_DEBUG);
    const char *item;
    size_t len;

    while (parse_list_next(&cursor, &item, &len)) {
        if (len == strlen("detail") && memcmp(item, "detail", len) == 0) {
            log_set_level(LOG_DEBUG);
        }
    }
}

static void say_before_start(const struct config *config)
{
    const struct job_env *job = &config->job;

    log_line(LOG_DEBUG, "program: %s", config->command.path);
    if (config->nodes.unknown[0] != '\0') {
        log_line(LOG_WARN, "--rdzv-conf: %s means nothing here",
                 config->nodes.unknown);
    }
    if (nodes_meet_on_loopback(&config->nodes)) {
        log_line(LOG_INFO,
                 "nodes meet at %s: only those on this machine can join",
                 config->nodes.host);
    }
    if (job->omp_num_threads > 0) {
        log_line(LOG_INFO,
                 "OMP_NUM_THREADS=%u for each of %u workers, to share the "
                 "CPUs; set it to choose",
                 job->omp_num_threads, config->n_workers);
    }
    if (config->n_workers > 1 &&
        elf_file_needs(config->command.path, "libmpi")) {
        log_line(LOG_WARN,
                 "%s is linked against MPI and will start as %u jobs of one "
                 "process, since flaunch is no MPI launcher: use mpirun -n %u",
                 config->program[0], config->n_workers, config->n_workers);
    }
}

/* Of the host node of several: a connection of each agent, and of each worker
 * one to the store, if all nodes are like this one. */
static uint64_t descriptors_needed(const struct config *config)
{
    const struct nodes *nodes = &config->nodes;
    uint64_t n = FDS_OF_OURS + FDS_OF_WORKER * config->n_workers;

    if (nodes->max > 1 && nodes->hosting != NODES_HOST_ELSEWHERE) {
        n += (uint64_t)nodes->min * (1 + config->n_workers);
    }
    return n;
}

/* Where this node hosts for sure; a port that is taken ends us at once. */
static int listen_maybe(const struct config *config, struct agent_setup *setup,
                        struct err *err)
{
    if (config->nodes.hosting != NODES_HOST_HERE) {
        return 0;
    }
    return rdzv_listen(config, &setup->listeners, err);
}

static int make_timer_file(struct run_files *files, struct err *err)
{
    char *path = timer_fifo_name();
    int rc = path != NULL
                 ? timer_fifo_make(path, err)
                 : err_sys(err, -ENOMEM, "cannot name the watchdog's FIFO");

    if (rc < 0) {
        free(path); /* what is there is not ours to remove */
        return rc;
    }
    files->timer_file = path;
    return 0;
}

/*
 * Directories of the run, before anything starts. One that the user named and
 * that is not to be used is a mistake of the command line.
 */
static int make_files(const struct config *config, struct run_files *files,
                      int *exit_code_out, struct err *err)
{
    const struct log_config *log = &config->log;
    int rc = 0;

    *exit_code_out = EXIT_FLAUNCH;
    if (log_config_has_files(log, config->n_workers) ||
        (log->dir != NULL && !log->no_files)) {
        rc = log_dir_make(log->dir, config->job.run_id, &files->log, err);
        if (rc < 0 && log->dir != NULL) {
            *exit_code_out = EXIT_USAGE;
        }
        if (rc == 0 && log->dir == NULL) {
            log_line(LOG_INFO, "logs are in %s", files->log.run);
        }
    } else {
        files->run_dir = run_dir_name();
    }
    return rc == 0 && config->timers ? make_timer_file(files, err) : rc;
}

static void remove_files(struct run_files *files)
{
    log_dir_end(&files->log);
    run_dir_remove(files->run_dir); /* where the guard could not */
    if (files->timer_file != NULL) {
        (void)unlink(files->timer_file);
    }
    free(files->timer_file);
    free(files->run_dir);
}

/* Everything from the guard on. */
static int run(const struct config *config, const struct inherited *inherited,
               struct run_files *files, char **argv, int argc)
{
    struct agent_setup setup = { .config = config,
                                 .inherited = inherited,
                                 .files = files };
    const struct guard_setup guard = { .inherited = inherited,
                                       .pidns = config->pidns,
                                       .run_dir = files->run_dir,
                                       .timer_file = files->timer_file,
                                       .argv = argv,
                                       .argc = argc };
    struct err err = { 0 };
    int rc;

    /* Orphans come to us if the guard should die. */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    rc = guard_start(&guard, &setup.guard, &err);
    if (rc < 0) {
        return fail(EXIT_FLAUNCH, &err);
    }
    rc = fds_raise_limit(descriptors_needed(config), &err);
    if (rc == 0) {
        rc = listen_maybe(config, &setup, &err);
    }
    if (rc < 0) {
        (void)close(setup.guard.fd); /* the guard leaves by this */
        return fail(EXIT_FLAUNCH, &err);
    }
    say_before_start(config);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGCHLD,
                 SIG_DFL); /* a parent's SIG_IGN would lose the guard */
    return agent_run(&setup);
}

static int run_with_files(struct config *config,
                          const struct inherited *inherited, char **argv,
                          int argc)
{
    struct run_files files = { 0 };
    struct terminal terminal;
    struct err err = { 0 };
    int exit_code;

    if (make_files(config, &files, &exit_code, &err) < 0) {
        remove_files(&files);
        return fail(exit_code, &err);
    }
    config->job.timer_file = files.timer_file;
    terminal_save(&terminal);
    exit_code = run(config, inherited, &files, argv, argc);
    terminal_restore(&terminal);
    remove_files(&files);
    return exit_code;
}

static int print_and_leave(const struct options *options,
                           const struct config *config)
{
    if (options_flag(options, OPT_EXPLAIN)) {
        explain_sources(options, config, stdout);
    }
    if (options_flag(options, OPT_DRY_RUN) &&
        explain_plan(config, environ, stdout) < 0) {
        return EXIT_FLAUNCH;
    }
    return fflush(stdout) == 0 ? 0 : EXIT_FLAUNCH;
}

static int print_completion(const struct options *options)
{
    struct err err = { 0 };

    if (completion_print(options->values[OPT_PRINT_COMPLETION].text, stdout) <
        0) {
        (void)options_bad(options, OPT_PRINT_COMPLETION,
                          "give bash, zsh or fish", &err);
        return fail(EXIT_USAGE, &err);
    }
    return fflush(stdout) == 0 ? 0 : EXIT_FLAUNCH;
}

int main(int argc, char **argv)
{
    char hostname[AGENT_HOST_MAX] = "";
    char new_run_id[UUID_TEXT_SIZE];
    const struct machine machine = { .n_cpus = cpu_count,
                                     .n_gpus = machine_gpus,
                                     .environ = { .get = env_get },
                                     .hostname = hostname,
                                     .new_run_id = new_run_id,
                                     .bind = binding_make };
    struct inherited inherited;
    struct options options;
    struct config config;
    struct err err = { 0 };
    int exit_code;

    inherited_take(&inherited);
    (void)gethostname(hostname, sizeof(hostname) - 1);
    uuid_make(new_run_id);
    debug_prepare();
    if (argc < 1 ||
        options_parse(argc, argv, env_get, NULL, &options, &err) < 0) {
        return fail(EXIT_USAGE, &err);
    }
    if (options_flag(&options, OPT_HELP)) {
        options_help(stdout);
        return fflush(stdout) == 0 ? 0 : EXIT_FLAUNCH;
    }
    if (options_flag(&options, OPT_VERSION)) {
        (void)printf("flaunch %s\n", FLAUNCH_VERSION_TEXT);
        return fflush(stdout) == 0 ? 0 : EXIT_FLAUNCH;
    }
    if (options.values[OPT_PRINT_COMPLETION].text != NULL) {
        return print_completion(&options);
    }
    if (options_flag(&options, OPT_STORE_ONLY)) {
        exit_code = store_only_run(&options, hostname, &err);
        free(inherited.children);
        return exit_code != 0 ? fail(exit_code, &err) : 0;
    }
    if (config_resolve(&options, &machine, &config, &exit_code, &err) < 0) {
        return fail(exit_code, &err);
    }
    if (options_flag(&options, OPT_DRY_RUN) ||
        options_flag(&options, OPT_EXPLAIN)) {
        exit_code = print_and_leave(&options, &config);
    } else {
        exit_code = run_with_files(&config, &inherited, argv, argc);
    }
    config_destroy(&config);
    free(inherited.children);
    return exit_code;
}
