/*
 * The one option table: parsing, --help, completions and the man page's check
 * come from it.
 *
 * Values come from the command line, FLAUNCH_OPT_<NAME> and, for torchrun's
 * options, PET_<NAME>, in this order; NAME is the option's in capitals, with _.
 */
#ifndef FLAUNCH_LAUNCHER_OPTIONS_H
#define FLAUNCH_LAUNCHER_OPTIONS_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum option_id {
    OPT_NPROC_PER_NODE,
    OPT_NNODES,
    OPT_NODE_RANK,
    OPT_MASTER_ADDR,
    OPT_MASTER_PORT,
    OPT_RDZV_ENDPOINT,
    OPT_RDZV_ID,
    OPT_RDZV_BACKEND,
    OPT_RDZV_CONF,
    OPT_JOIN_TIMEOUT,
    OPT_HEARTBEAT_TIMEOUT,
    OPT_BIND,
    OPT_LOCAL_ADDR,
    OPT_MODULE,
    OPT_NO_PYTHON,
    OPT_RUN_PATH,
    OPT_EXPAND_MACROS,
    OPT_ROLE,
    OPT_SHUTDOWN_TIMEOUT,
    OPT_MAX_RESTARTS,
    OPT_RESTART_BACKOFF,
    OPT_TIMEOUT,
    OPT_STACKS,
    OPT_MAX_SPREAD,
    OPT_SIGNALS_TO_HANDLE,
    OPT_FORWARD_SIGNALS,
    OPT_STDIN,
    OPT_LOG_DIR,
    OPT_REDIRECTS,
    OPT_TEE,
    OPT_LOCAL_RANKS_FILTER,
    OPT_DUPLICATE_STDOUT_FILTERS,
    OPT_DUPLICATE_STDERR_FILTERS,
    OPT_LOG_PREFIX,
    OPT_TIMESTAMPS,
    OPT_PTY,
    OPT_RAW,
    OPT_EVENT_LOG_HANDLER,
    OPT_NUMA_BINDING,
    OPT_VIRTUAL_LOCAL_RANK,
    OPT_PIDNS,
    OPT_KEEP_PROCESSES,
    OPT_KEEP_ENV,
    OPT_STANDALONE,
    OPT_STORE_ONLY,
    OPT_LEGACY_DIALECT,
    OPT_STORE_MAX_CONNECTIONS,
    OPT_STORE_MAX_KEYS,
    OPT_STORE_MAX_KEY_BYTES,
    OPT_STORE_MAX_VALUE_BYTES,
    OPT_STORE_MAX_MEMORY,
    OPT_DRY_RUN,
    OPT_EXPLAIN,
    OPT_PRINT_COMPLETION,
    OPT_HELP,
    OPT_VERSION,
    /* Of torchrun, and without effect here. */
    OPT_MONITOR_INTERVAL,
    OPT_START_METHOD,
    OPT_LOGS_SPECS,
    N_OPTIONS,
};

enum option_kind {
    OPTION_FLAG,
    OPTION_VALUE,
};

/* Whether PET_<NAME> sets it, as in torchrun. */
enum option_pet {
    OPTION_NO_PET,
    OPTION_PET,
};

struct option_row {
    const char *name; /* with dashes; underscores are accepted as well */
    char letter;      /* 0: none */
    enum option_kind kind;
    enum option_pet pet;
    const char *metavar;
    const char *fallback; /* the default, as a person would type it; or NULL */
    const char *help;
};

extern const struct option_row option_table[N_OPTIONS];

enum option_source {
    FROM_DEFAULT,
    FROM_COMMAND_LINE,
    FROM_FLAUNCH_ENV,
    FROM_PET_ENV,
};

struct option_value {
    const char *text; /* borrowed from argv, the environment or the table */
    enum option_source source;
};

struct options {
    struct option_value values[N_OPTIONS]; /* text NULL: not given */
    char *
        *program; /* what follows the options, NULL at its end; may be empty */
};

/*
 * Read the command line up to the program. env is asked for defaults
 * (getenv, or a test's).
 *
 * Returns 0, or -EINVAL with a sentence.
 */
int options_parse(int argc, char **argv,
                  const char *(*env)(const char *name, void *arg), void *arg,
                  struct options *options_out, struct err *err);

/* Whether a flag is set: given, or by a variable with another number than 0. */
bool options_flag(const struct options *options, enum option_id id);

/* "the command line", "PET_NPROC_PER_NODE": where a value came from. */
void options_source_name(const struct options *options, enum option_id id,
                         char *text_out, size_t size);

/*
 * A value is not to be used: "--role=x (from PET_ROLE): give a name". want says
 * what would be. Returns -EINVAL.
 */
int options_bad(const struct options *options, enum option_id id,
                const char *want, struct err *err);

/* Print --help. */
void options_help(FILE *file);

#endif
