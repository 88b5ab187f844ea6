#include "launcher/options.h"

#include "common/parse.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <string.h>

const struct option_row option_table[N_OPTIONS] = {
    [OPT_NPROC_PER_NODE] = { "nproc-per-node", 0, OPTION_VALUE, OPTION_PET,
                             "N|auto|cpu|gpu", "1",
                             "workers to start; auto: one per GPU, else per "
                             "CPU" },
    [OPT_NNODES] = { "nnodes", 0, OPTION_VALUE, OPTION_PET, "N|MIN:MAX", "1",
                     "nodes of the job; MIN:MAX: some may come and go" },
    [OPT_NODE_RANK] = { "node-rank", 0, OPTION_VALUE, OPTION_PET, "RANK", NULL,
                        "number of this node, from 0; node 0 hosts the job" },
    [OPT_MASTER_ADDR] = { "master-addr", 0, OPTION_VALUE, OPTION_PET, "HOST",
                          NULL, "host of node 0, the same on each node" },
    [OPT_MASTER_PORT] = { "master-port", 0, OPTION_VALUE, OPTION_PET, "PORT",
                          NULL,
                          "port of the store; on one node a free one, else "
                          "29500" },
    [OPT_RDZV_ENDPOINT] = { "rdzv-endpoint", 0, OPTION_VALUE, OPTION_PET,
                            "HOST[:PORT]", NULL,
                            "the same as torchrun has it; port 29400" },
    [OPT_RDZV_ID] = { "rdzv-id", 0, OPTION_VALUE, OPTION_PET, "ID", "none",
                      "name of the job, the same on each node" },
    [OPT_RDZV_BACKEND] = { "rdzv-backend", 0, OPTION_VALUE, OPTION_PET,
                           "static|c10d", "static",
                           "accepted: nodes meet in one way" },
    [OPT_RDZV_CONF] = { "rdzv-conf", 0, OPTION_VALUE, OPTION_PET,
                        "KEY=VALUE,...", NULL,
                        "join_timeout, last_call_timeout, is_host and others "
                        "of torchrun's" },
    [OPT_JOIN_TIMEOUT] = { "join-timeout", 0, OPTION_VALUE, OPTION_NO_PET,
                           "SECONDS", "600",
                           "wait this long for all nodes, then exit 124" },
    [OPT_HEARTBEAT_TIMEOUT] = { "heartbeat-timeout", 0, OPTION_VALUE,
                                OPTION_NO_PET, "SECONDS", "10",
                                "a node that is silent for this long is lost" },
    [OPT_BIND] = { "bind", 0, OPTION_VALUE, OPTION_NO_PET, "ADDRESS", "",
                   "with several nodes: listen at this address only" },
    [OPT_LOCAL_ADDR] = { "local-addr", 0, OPTION_VALUE, OPTION_PET, "HOST",
                         NULL, "name of this node for the others" },
    [OPT_MODULE] = { "module", 'm', OPTION_FLAG, OPTION_PET, NULL, NULL,
                     "PROGRAM is a Python module, run with python -m" },
    [OPT_NO_PYTHON] = { "no-python", 0, OPTION_FLAG, OPTION_PET, NULL, NULL,
                        "execute PROGRAM as it is, even if it ends in .py" },
    [OPT_RUN_PATH] = { "run-path", 0, OPTION_FLAG, OPTION_PET, NULL, NULL,
                       "PROGRAM is a Python script, whatever its name" },
    [OPT_EXPAND_MACROS] = { "expand-macros", 0, OPTION_FLAG, OPTION_NO_PET,
                            NULL, NULL,
                            "put the local rank for ${local_rank} in ARGS, and "
                            "$ for $$, as torchrun does" },
    [OPT_ROLE] = { "role", 0, OPTION_VALUE, OPTION_PET, "NAME", "default",
                   "ROLE_NAME of the workers" },
    [OPT_SHUTDOWN_TIMEOUT] = { "shutdown-timeout", 0, OPTION_VALUE, OPTION_PET,
                               "SECONDS", "30",
                               "time between a stop and SIGKILL; 0: none" },
    [OPT_MAX_RESTARTS] = { "max-restarts", 0, OPTION_VALUE, OPTION_PET, "N",
                           "0", "times a failed job is started again" },
    [OPT_RESTART_BACKOFF] = { "restart-backoff", 0, OPTION_VALUE, OPTION_NO_PET,
                              "SECONDS", "1",
                              "first wait after an attempt shorter than 10 s; "
                              "it doubles up to 30 s; 0: never" },
    [OPT_TIMEOUT] = { "timeout", 0, OPTION_VALUE, OPTION_NO_PET, "SECONDS", "0",
                      "stop the job after this time, exit 124; 0: never" },
    [OPT_STACKS] = { "stacks", 0, OPTION_FLAG, OPTION_NO_PET, NULL, NULL,
                     "at a time limit print the workers' stacks, with gdb" },
    [OPT_MAX_SPREAD] = { "max-spread", 0, OPTION_VALUE, OPTION_NO_PET,
                         "SECONDS", "0",
                         "stop the job when a rank still runs this long after "
                         "the first has ended well, exit 124; 0: never" },
    [OPT_SIGNALS_TO_HANDLE] = { "signals-to-handle", 0, OPTION_VALUE,
                                OPTION_PET, "NAMES",
                                "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
                                "signals that stop the job; SIGTERM always "
                                "does" },
    [OPT_FORWARD_SIGNALS] = { "forward-signals", 0, OPTION_VALUE, OPTION_NO_PET,
                              "NAMES", "USR1,USR2",
                              "signals to pass on to the workers" },
    [OPT_STDIN] = { "stdin", 0, OPTION_VALUE, OPTION_NO_PET, "none|all|RANK",
                    "0",
                    "who gets our standard input; the others read an end of "
                    "file" },
    [OPT_LOG_DIR] = { "log-dir", 0, OPTION_VALUE, OPTION_PET, "DIR", NULL,
                      "directory for the files of --redirects and --tee; "
                      "/dev/null: no files" },
    [OPT_REDIRECTS] = { "redirects", 'r', OPTION_VALUE, OPTION_PET, "WHAT", "0",
                        "output to files: 1 stdout, 2 stderr, 3 both; or by "
                        "local rank, 0:3,1-3:2,all:1" },
    [OPT_TEE] = { "tee", 't', OPTION_VALUE, OPTION_PET, "WHAT", "0",
                  "output to files and, with a prefix, to the screen" },
    [OPT_LOCAL_RANKS_FILTER] = { "local-ranks-filter", 0, OPTION_VALUE,
                                 OPTION_PET, "RANKS", "",
                                 "local ranks to show, such as 0,2-3" },
    [OPT_DUPLICATE_STDOUT_FILTERS] = { "duplicate-stdout-filters", 0,
                                       OPTION_VALUE, OPTION_PET, "TEXTS", NULL,
                                       "teed lines of stdout with one of these "
                                       "texts go to filtered_stdout.log as "
                                       "well" },
    [OPT_DUPLICATE_STDERR_FILTERS] = { "duplicate-stderr-filters", 0,
                                       OPTION_VALUE, OPTION_PET, "TEXTS", NULL,
                                       "the same for stderr" },
    [OPT_LOG_PREFIX] = { "log-prefix", 0, OPTION_VALUE, OPTION_NO_PET,
                         "TEMPLATE", NULL,
                         "text before each line on the screen: ${rank}, "
                         "${local_rank}, ${role_name}, ${host}" },
    [OPT_TIMESTAMPS] = { "timestamps", 0, OPTION_FLAG, OPTION_NO_PET, NULL,
                         NULL, "the time before each line on the screen" },
    [OPT_PTY] = { "pty", 0, OPTION_FLAG, OPTION_NO_PET, NULL, NULL,
                  "a pseudo-terminal for each worker, also where our output "
                  "is none" },
    [OPT_RAW] = { "raw", 0, OPTION_FLAG, OPTION_NO_PET, NULL, NULL,
                  "workers get our output descriptors themselves" },
    [OPT_EVENT_LOG_HANDLER] = { "event-log-handler", 0, OPTION_VALUE,
                                OPTION_PET, "null|console", "null",
                                "console: tell of each step as a line of JSON "
                                "on stderr" },
    [OPT_NUMA_BINDING] = { "numa-binding", 0, OPTION_VALUE, OPTION_NO_PET,
                           "node|socket|exclusive|core-complex", NULL,
                           "bind each worker to CPUs near its GPU" },
    [OPT_VIRTUAL_LOCAL_RANK] = { "virtual-local-rank", 0, OPTION_FLAG,
                                 OPTION_PET, NULL, NULL,
                                 "LOCAL_RANK is 0 for all, and each worker "
                                 "sees its GPU only" },
    [OPT_PIDNS] = { "pidns", 0, OPTION_FLAG, OPTION_NO_PET, NULL, NULL,
                    "workers in a PID namespace: the kernel ends them all, "
                    "whatever is killed" },
    [OPT_KEEP_PROCESSES] = { "keep-processes", 0, OPTION_VALUE, OPTION_NO_PET,
                             "NAMES", "",
                             "names of daemons to leave running at the end" },
    [OPT_KEEP_ENV] = { "keep-env", 0, OPTION_FLAG, OPTION_NO_PET, NULL, NULL,
                       "leave variables of outer launchers in the workers' "
                       "environment" },
    [OPT_STANDALONE] = { "standalone", 0, OPTION_FLAG, OPTION_PET, NULL, NULL,
                         "one node, whatever else is said" },
    [OPT_STORE_ONLY] = { "store-only", 0, OPTION_FLAG, OPTION_NO_PET, NULL,
                         NULL,
                         "serve a store, start no workers; print HOST:PORT, "
                         "end "
                         "with 0 on SIGTERM" },
    [OPT_LEGACY_DIALECT] = { "legacy-dialect", 0, OPTION_VALUE, OPTION_NO_PET,
                             "auto|1.13|2.1", "auto",
                             "which PyTorch before 2.2 the store's clients "
                             "have" },
    [OPT_STORE_MAX_CONNECTIONS] = { "store-max-connections", 0, OPTION_VALUE,
                                    OPTION_NO_PET, "N", "100000",
                                    "clients of the store" },
    [OPT_STORE_MAX_KEYS] = { "store-max-keys", 0, OPTION_VALUE, OPTION_NO_PET,
                             "N", "10000000", "keys in the store" },
    [OPT_STORE_MAX_KEY_BYTES] = { "store-max-key-bytes", 0, OPTION_VALUE,
                                  OPTION_NO_PET, "SIZE", "8K", "longest key" },
    [OPT_STORE_MAX_VALUE_BYTES] = { "store-max-value-bytes", 0, OPTION_VALUE,
                                    OPTION_NO_PET, "SIZE", "8M",
                                    "longest value of one request" },
    [OPT_STORE_MAX_MEMORY] = { "store-max-memory", 0, OPTION_VALUE,
                               OPTION_NO_PET, "SIZE", "1G",
                               "memory of the store, all in all" },
    [OPT_DRY_RUN] = { "dry-run", 0, OPTION_FLAG, OPTION_NO_PET, NULL, NULL,
                      "print what would be started, and start nothing" },
    [OPT_EXPLAIN] = { "explain", 0, OPTION_FLAG, OPTION_NO_PET, NULL, NULL,
                      "print where each value came from, and start nothing" },
    [OPT_PRINT_COMPLETION] = { "print-completion", 0, OPTION_VALUE,
                               OPTION_NO_PET, "bash|zsh|fish", NULL,
                               "print a script that completes options in this "
                               "shell" },
    [OPT_HELP] = { "help", 'h', OPTION_FLAG, OPTION_NO_PET, NULL, NULL,
                   "print this" },
    [OPT_VERSION] = { "version", 0, OPTION_FLAG, OPTION_NO_PET, NULL, NULL,
                      "print the version" },
    [OPT_MONITOR_INTERVAL] = { "monitor-interval", 0, OPTION_VALUE, OPTION_PET,
                               "SECONDS", "0.1",
                               "checked; flaunch does not poll" },
    [OPT_START_METHOD] = { "start-method", 0, OPTION_VALUE, OPTION_PET,
                           "spawn|fork|forkserver", "spawn",
                           "checked; there is no Python to start from" },
    [OPT_LOGS_SPECS] = { "logs-specs", 0, OPTION_VALUE, OPTION_NO_PET, "NAME",
                         NULL, "refused: it names a Python plugin" },
};

/* Both spellings of each name, for getopt_long. */
#define LONG_MAX_ROWS (2 * N_OPTIONS + 1)
#define NAME_MAX_LEN 32
#define LONG_BASE 1000 /* val of a long option: LONG_BASE + id */

struct getopt_tables {
    struct option longs[LONG_MAX_ROWS];
    char spelled[N_OPTIONS][NAME_MAX_LEN];
    char shorts[3 * N_OPTIONS + 3];
};

/* name with every from replaced by to. */
static void spell(const char *name, char from, char to, char *out)
{
    size_t i;

    for (i = 0; i < NAME_MAX_LEN - 1 && name[i] != '\0'; i++) {
        out[i] = name[i];
        if (out[i] == from) {
            out[i] = to;
        }
    }
    out[i] = '\0';
}

static void tables_fill(struct getopt_tables *tables)
{
    char *letter = tables->shorts;
    size_t n = 0;
    int id;

    *letter++ = '+'; /* stop at the program */
    *letter++ = ':'; /* tell a missing value from an unknown option */
    for (id = 0; id < N_OPTIONS; id++) {
        const struct option_row *row = &option_table[id];
        struct option option = { .name = row->name,
                                 .has_arg = row->kind == OPTION_VALUE
                                                ? required_argument
                                                : no_argument,
                                 .val = LONG_BASE + id };

        tables->longs[n++] = option;
        if (strchr(row->name, '-') != NULL) {
            spell(row->name, '-', '_', tables->spelled[id]);
            option.name = tables->spelled[id];
            tables->longs[n++] = option;
        }
        if (row->letter != '\0') {
            *letter++ = row->letter;
            if (row->kind == OPTION_VALUE) {
                *letter++ = ':';
            }
        }
    }
}

static int option_of_letter(int letter)
{
    int id;

    for (id = 0; id < N_OPTIONS; id++) {
        if (option_table[id].letter == letter) {
            return id;
        }
    }
    return -1;
}

/* How many options a prefix could mean: tells ambiguous from unknown. */
static int count_prefix(const char *text, size_t len)
{
    char dashed[NAME_MAX_LEN];
    char name[NAME_MAX_LEN];
    int n = 0;
    int id;

    if (len >= sizeof(name)) {
        return 0;
    }
    memcpy(name, text, len);
    name[len] = '\0';
    spell(name, '_', '-', dashed);
    for (id = 0; id < N_OPTIONS; id++) {
        n += strncmp(option_table[id].name, dashed, len) == 0;
    }
    return n;
}

/* Why getopt_long did not like the argument at hand. */
static int refuse(const char *argument, int letter, bool no_value,
                  struct err *err)
{
    size_t len = strcspn(argument, "=");

    if (strncmp(argument, "--", 2) != 0) {
        if (no_value) {
            return err_set(err, -EINVAL, "option -%c needs a value", letter);
        }
        return err_set(err, -EINVAL,
                       "unknown option -%c; flaunch --help lists them", letter);
    }
    if (no_value) {
        return err_set(err, -EINVAL, "option %.*s needs a value", (int)len,
                       argument);
    }
    switch (count_prefix(argument + 2, len - 2)) {
    case 0:
        return err_set(err, -EINVAL,
                       "unknown option %.*s; flaunch --help lists them",
                       (int)len, argument);
    case 1:
        return err_set(err, -EINVAL, "option %.*s takes no value", (int)len,
                       argument);
    default:
        return err_set(err, -EINVAL,
                       "option %.*s could mean several; write it out", (int)len,
                       argument);
    }
}

/* "-1", "-.5" */
static bool is_negative_number(const char *text)
{
    size_t whole = strspn(text + 1, "0123456789");
    const char *rest = text + 1 + whole;

    if (*rest == '.' && isdigit((unsigned char)rest[1])) {
        return rest[1 + strspn(rest + 1, "0123456789")] == '\0';
    }
    return whole > 0 && *rest == '\0';
}

/*
 * Whether a value that stands by itself is rather the next option: then one
 * was forgotten. As argparse, torchrun's parser, has it.
 */
static bool is_no_value(const char *text)
{
    return text[0] == '-' && text[1] != '\0' && !is_negative_number(text) &&
           strchr(text, ' ') == NULL;
}

static int parse_arguments(int argc, char **argv, struct options *options,
                           struct err *err)
{
    struct getopt_tables tables = { 0 };
    int found;

    tables_fill(&tables);
    opterr = 0;
    optind = 0; /* glibc: begin anew, also with '+' */
    for (;;) {
        int at = optind > 0 ? optind : 1;
        const char *text;
        int id;

        found = getopt_long(argc, argv, tables.shorts, tables.longs, NULL);
        if (found == -1) {
            break;
        }
        if (found == '?' || found == ':') {
            return refuse(argv[at], optopt, found == ':', err);
        }
        id = found >= LONG_BASE ? found - LONG_BASE : option_of_letter(found);
        assert(id >= 0);
        text = optarg != NULL ? optarg : "1";
        if (optarg != NULL && optarg == argv[optind - 1] &&
            is_no_value(optarg)) {
            return err_set(err, -EINVAL,
                           "option %.64s needs a value; one that begins with - "
                           "is given as --%s=%.64s",
                           argv[at], option_table[id].name, optarg);
        }
        if (found < LONG_BASE && text[0] == '=') {
            text++; /* -r=3: getopt_long leaves the sign */
        }
        options->values[id] =
            (struct option_value){ .text = text, .source = FROM_COMMAND_LINE };
    }
    options->program = argv + optind;
    return 0;
}

/* The variable of an option: "PET_NPROC_PER_NODE". */
static void env_name(const char *prefix, enum option_id id, char *out,
                     size_t size)
{
    size_t start = strlen(prefix);
    size_t i;

    (void)snprintf(out, size, "%s%s", prefix, option_table[id].name);
    for (i = start; out[i] != '\0'; i++) {
        if (out[i] == '-') {
            out[i] = '_';
        } else {
            out[i] = (char)toupper((unsigned char)out[i]);
        }
    }
}

static const struct {
    enum option_source source;
    const char *prefix;
} env_sources[] = {
    { FROM_FLAUNCH_ENV, "FLAUNCH_OPT_" },
    { FROM_PET_ENV, "PET_" },
};

#define N_ENV_SOURCES (sizeof(env_sources) / sizeof(env_sources[0]))

static void take_default(const char *(*env)(const char *name, void *arg),
                         void *arg, enum option_id id,
                         struct option_value *value)
{
    char name[64];
    size_t i;

    for (i = 0; i < N_ENV_SOURCES && value->text == NULL; i++) {
        if (env_sources[i].source == FROM_PET_ENV &&
            option_table[id].pet == OPTION_NO_PET) {
            continue;
        }
        env_name(env_sources[i].prefix, id, name, sizeof(name));
        value->text = env(name, arg);
        value->source = env_sources[i].source;
    }
    if (value->text == NULL) {
        value->text = option_table[id].fallback;
        value->source = FROM_DEFAULT;
    }
}

/* What is not on the command line. A flag's variable holds a number. */
static int take_defaults(const char *(*env)(const char *name, void *arg),
                         void *arg, struct options *options, struct err *err)
{
    int id;

    for (id = 0; id < N_OPTIONS; id++) {
        struct option_value *value = &options->values[id];
        int64_t on;

        take_default(env, arg, (enum option_id)id, value);
        if (option_table[id].kind != OPTION_FLAG ||
            value->source == FROM_DEFAULT ||
            value->source == FROM_COMMAND_LINE) {
            continue;
        }
        if (parse_python_int(value->text, INT64_MIN, INT64_MAX, &on) < 0) {
            return options_bad(options, (enum option_id)id, "give 1 or 0", err);
        }
        value->text = on != 0 ? "1" : "0";
    }
    return 0;
}

int options_parse(int argc, char **argv,
                  const char *(*env)(const char *name, void *arg), void *arg,
                  struct options *options_out, struct err *err)
{
    struct options options = { 0 };
    int rc = parse_arguments(argc, argv, &options, err);

    if (rc < 0) {
        return rc;
    }
    rc = take_defaults(env, arg, &options, err);
    if (rc == 0) {
        *options_out = options;
    }
    return rc;
}

bool options_flag(const struct options *options, enum option_id id)
{
    const struct option_value *value = &options->values[id];

    return value->text != NULL && strcmp(value->text, "0") != 0;
}

void options_source_name(const struct options *options, enum option_id id,
                         char *text_out, size_t size)
{
    enum option_source source = options->values[id].source;
    size_t i;

    for (i = 0; i < N_ENV_SOURCES; i++) {
        if (env_sources[i].source == source) {
            env_name(env_sources[i].prefix, id, text_out, size);
            return;
        }
    }
    (void)snprintf(text_out, size, "%s",
                   source == FROM_COMMAND_LINE ? "the command line"
                                               : "the default");
}

int options_bad(const struct options *options, enum option_id id,
                const char *want, struct err *err)
{
    const struct option_value *value = &options->values[id];
    bool typed = value->source == FROM_COMMAND_LINE;
    char from[80];

    options_source_name(options, id, from, sizeof(from));
    return err_set(err, -EINVAL, "--%s=%.128s%s%s%s: %s", option_table[id].name,
                   value->text != NULL ? value->text : "",
                   typed ? "" : " (from ", typed ? "" : from, typed ? "" : ")",
                   want);
}

static void help_row(FILE *file, const struct option_row *row)
{
    char left[64];

    (void)snprintf(left, sizeof(left), "%c%c%s--%s%s%s",
                   row->letter != '\0' ? '-' : ' ',
                   row->letter != '\0' ? row->letter : ' ',
                   row->letter != '\0' ? ", " : "  ", row->name,
                   row->metavar != NULL ? " " : "",
                   row->metavar != NULL ? row->metavar : "");
    (void)fprintf(file, "  %-36s %s%s%s%s\n", left, row->help,
                  row->fallback != NULL ? " (default: " : "",
                  row->fallback != NULL ? row->fallback : "",
                  row->fallback != NULL ? ")" : "");
}

void options_help(FILE *file)
{
    int id;

    (void)fputs(
        "usage: flaunch [OPTIONS] PROGRAM [ARGS...]\n"
        "\n"
        "Start PROGRAM as the workers of a distributed training job, watch\n"
        "them, and leave nothing behind. A .py file runs under Python.\n"
        "\n",
        file);
    for (id = 0; id < OPT_MONITOR_INTERVAL; id++) {
        help_row(file, &option_table[id]);
    }
    (void)fputs("\nOf torchrun, and without effect here:\n", file);
    for (id = OPT_MONITOR_INTERVAL; id < N_OPTIONS; id++) {
        help_row(file, &option_table[id]);
    }
    (void)fputs("\nEach option can be set by FLAUNCH_OPT_<NAME> as well, and "
                "torchrun's by\nPET_<NAME>. More: man flaunch\n",
                file);
}
