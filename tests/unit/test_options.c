/*
 * The command line and what it resolves to.
 */
#include "launcher/config.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct env_row {
    const char *name;
    const char *value;
};

static const char *env_find(const char *name, void *arg)
{
    const struct env_row *row = arg;

    for (; row != NULL && row->name != NULL; row++) {
        if (strcmp(row->name, name) == 0) {
            return row->value;
        }
    }
    return NULL;
}

#define ARGS_MAX 16

/* Parse a line whose words are separated by blanks. */
static int parse(const char *line, struct env_row *env, struct options *options,
                 struct err *err)
{
    static char copy[512];
    static char *argv[ARGS_MAX + 1];
    int argc = 0;
    char *rest;
    char *word;

    (void)snprintf(copy, sizeof(copy), "flaunch %s", line);
    for (word = strtok_r(copy, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    *err = (struct err){ 0 };
    return options_parse(argc, argv, env_find, env, options, err);
}

static void every_spelling_means_the_same(void **state)
{
    static const char *const lines[] = {
        "--nproc-per-node=3 prog",
        "--nproc_per_node=3 prog",
        "--nproc-per-node 3 prog",
        "--nproc_per_node 3 prog",
        "--nproc-per 3 prog",
        "--np=3 prog",
        "--nproc_per_node 9 --nproc-per-node 3 prog",
    };
    struct options options;
    struct err err;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_int_equal(parse(lines[i], NULL, &options, &err), 0);
        assert_string_equal(options.values[OPT_NPROC_PER_NODE].text, "3");
        assert_string_equal(options.program[0], "prog");
        assert_null(options.program[1]);
    }
}

static void parsing_stops_at_the_program(void **state)
{
    struct options options;
    struct err err;

    (void)state;
    assert_int_equal(parse("-m prog --role x -m -h", NULL, &options, &err), 0);
    assert_true(options_flag(&options, OPT_MODULE));
    assert_false(options_flag(&options, OPT_HELP));
    assert_string_equal(options.values[OPT_ROLE].text, "default");
    assert_string_equal(options.program[1], "--role");
    assert_string_equal(options.program[4], "-h");
    assert_int_equal(parse("-- --role", NULL, &options, &err), 0);
    assert_string_equal(options.program[0], "--role");
}

static void glued_short_options_work(void **state)
{
    static const char *const lines[] = { "-t0 p", "-t 0 p", "-t=0 p",
                                         "-mt0 p" };
    struct options options;
    struct err err;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_int_equal(parse(lines[i], NULL, &options, &err), 0);
        assert_string_equal(options.values[OPT_TEE].text, "0");
        assert_int_equal(options.values[OPT_TEE].source, FROM_COMMAND_LINE);
    }
}

static void mistakes_are_named(void **state)
{
    static const struct {
        const char *line;
        const char *words;
    } rows[] = {
        { "--nope p", "unknown option --nope;" },
        { "--nope=3 p", "unknown option --nope;" },
        { "-z p", "unknown option -z;" },
        { "-mz p", "unknown option -z;" },
        { "--role", "option --role needs a value" },
        { "-t", "option -t needs a value" },
        { "--dry-run=1 p", "option --dry-run takes no value" },
        { "--no=1 p", "option --no could mean several" },
        { "--no_x p", "unknown option --no_x;" },
        { "--role --tee 3 p", "option --role needs a value; one that begins "
                              "with - is given as --role=--tee" },
        { "-t -m p", "option -t needs a value; one that begins with - is "
                     "given as --tee=-m" },
    };
    struct options options;
    struct err err;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(parse(rows[i].line, NULL, &options, &err), -EINVAL);
        if (strstr(err.text, rows[i].words) == NULL) {
            fail_msg("%s: %s", rows[i].line, err.text);
        }
    }
}

static void a_value_may_begin_with_a_dash_where_that_is_meant(void **state)
{
    static const char *const lines[] = { "--role=-x p", "--role -1 p",
                                         "--role -1.5 p", "--role - p",
                                         "--role -.5 p" };
    struct options options;
    struct err err;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_int_equal(parse(lines[i], NULL, &options, &err), 0);
        assert_int_equal(options.values[OPT_ROLE].text[0], '-');
        assert_string_equal(options.program[0], "p");
    }
}

static void a_variable_of_a_flag_holds_a_number(void **state)
{
    static const struct {
        const char *text;
        int on; /* -1: refused */
    } rows[] = { { "1", 1 },  { "0", 0 },     { " 2 ", 1 }, { "-1", 1 },
                 { "00", 0 }, { "true", -1 }, { "", -1 },   { "1.0", -1 } };
    struct env_row env[] = { { "PET_STANDALONE", NULL }, { NULL, NULL } };
    struct options options;
    struct err err;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int rc;

        env[0].value = rows[i].text;
        rc = parse("p", env, &options, &err);
        assert_int_equal(rc, rows[i].on < 0 ? -EINVAL : 0);
        if (rc == 0) {
            assert_int_equal(options_flag(&options, OPT_STANDALONE),
                             rows[i].on);
        }
    }
    /* Where the option is given, its variable does not count. */
    assert_int_equal(parse("--standalone p", env, &options, &err), 0);
}

static void only_torchruns_options_have_its_variables(void **state)
{
    struct env_row env[] = {
        { "PET_TIMEOUT", "7" },         { "PET_NUMA_BINDING", "node" },
        { "PET_LOGS_SPECS", "x" },      { "PET_MAX_RESTARTS", "" },
        { "FLAUNCH_OPT_STDIN", "all" }, { NULL, NULL }
    };
    struct options options;
    struct err err;

    (void)state;
    assert_int_equal(parse("p", env, &options, &err), 0);
    assert_string_equal(options.values[OPT_TIMEOUT].text, "0");
    assert_null(options.values[OPT_NUMA_BINDING].text);
    assert_null(options.values[OPT_LOGS_SPECS].text);
    assert_string_equal(options.values[OPT_MAX_RESTARTS].text, ""); /* used */
    assert_string_equal(options.values[OPT_STDIN].text, "all");
    (void)options_bad(&options, OPT_MAX_RESTARTS, "give a number", &err);
    assert_string_equal(
        err.text, "--max-restarts= (from PET_MAX_RESTARTS): give a number");
}

static void the_environment_fills_in_what_is_not_given(void **state)
{
    struct env_row env[] = {
        { "PET_NPROC_PER_NODE", "2" }, { "FLAUNCH_OPT_ROLE", "ours" },
        { "PET_ROLE", "theirs" },      { "PET_NO_PYTHON", "0" },
        { "PET_STANDALONE", "1" },     { NULL, NULL }
    };
    struct options options;
    struct err err;
    char from[64];

    (void)state;
    assert_int_equal(parse("p", env, &options, &err), 0);
    assert_string_equal(options.values[OPT_NPROC_PER_NODE].text, "2");
    assert_string_equal(options.values[OPT_ROLE].text, "ours");
    assert_false(options_flag(&options, OPT_NO_PYTHON));
    assert_true(options_flag(&options, OPT_STANDALONE));
    options_source_name(&options, OPT_NPROC_PER_NODE, from, sizeof(from));
    assert_string_equal(from, "PET_NPROC_PER_NODE");
    options_source_name(&options, OPT_MASTER_PORT, from, sizeof(from));
    assert_string_equal(from, "the default");
    assert_int_equal(parse("--nproc-per-node 5 p", env, &options, &err), 0);
    assert_string_equal(options.values[OPT_NPROC_PER_NODE].text, "5");
}

static void every_row_has_a_name_and_help(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < N_OPTIONS; i++) {
        assert_non_null(option_table[i].name);
        assert_true(strlen(option_table[i].name) < 32);
        assert_non_null(option_table[i].help);
        assert_true((option_table[i].metavar != NULL) ==
                    (option_table[i].kind == OPTION_VALUE));
    }
}

/* --- config ------------------------------------------------------------ */

static unsigned four(void)
{
    return 4;
}

static unsigned none(void)
{
    return 0;
}

static const char *no_variable(const char *name, void *arg)
{
    (void)name;
    (void)arg;
    return NULL;
}

static const struct machine cpus_only = { .n_cpus = four,
                                          .n_gpus = none,
                                          .environ = { .get = no_variable },
                                          .hostname = "host" };
static const struct machine with_gpus = { .n_cpus = four,
                                          .n_gpus = four,
                                          .environ = { .get = no_variable },
                                          .hostname = "host" };

static int resolve(const char *line, const struct machine *machine,
                   struct config *config, int *exit_code, struct err *err)
{
    struct options options;
    int rc = parse(line, NULL, &options, err);

    return rc < 0 ? rc
                  : config_resolve(&options, machine, config, exit_code, err);
}

static void counts_resolve(void **state)
{
    static const struct {
        const char *line;
        const struct machine *machine;
        uint32_t n;
    } rows[] = {
        { "true", &cpus_only, 1 },
        { "--nproc-per-node=7 true", &cpus_only, 7 },
        { "--nproc-per-node=cpu true", &with_gpus, 4 },
        { "--nproc-per-node=auto true", &cpus_only, 4 },
        { "--nproc-per-node=auto true", &with_gpus, 4 },
        { "--nproc-per-node=gpu true", &with_gpus, 4 },
    };
    struct config config;
    struct err err;
    int exit_code;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(
            resolve(rows[i].line, rows[i].machine, &config, &exit_code, &err),
            0);
        assert_int_equal(config.n_workers, rows[i].n);
        config_destroy(&config);
    }
}

static void wrong_values_have_their_exit_codes(void **state)
{
    static const struct {
        const char *line;
        int exit_code;
    } rows[] = {
        { "", 2 },
        { "--nproc-per-node=0 true", 2 },
        { "--nproc-per-node=gpu true", 2 },
        { "--master-port=-1 true", 2 },
        { "--master-port=65536 true", 2 },
        { "--shutdown-timeout=x true", 2 },
        { "--max-restarts=-1 true", 2 },
        { "--max-restarts=many true", 2 },
        { "--restart-backoff=x true", 2 },
        { "--timeout=x true", 2 },
        { "--max-spread=x true", 2 },
        { "--nnodes=2 true", 2 },
        { "--stdin=1 true", 2 },
        { "--stdin=first true", 2 },
        { "--forward-signals=KILL true", 2 },
        { "--forward-signals=USR1,nope true", 2 },
        { "-m --no-python true", 2 },
        { "/no/such/program", 127 },
        { "no-such-program-in-path", 127 },
        { "/dev/null/x", 127 },
        { "/", 126 },
        { "/etc/passwd", 126 },
        { "/no/such/script.py", 127 },
    };
    struct config config;
    struct err err;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int exit_code = 0;

        assert_true(
            resolve(rows[i].line, &cpus_only, &config, &exit_code, &err) < 0);
        assert_int_equal(exit_code, rows[i].exit_code);
        assert_true(err.text[0] != '\0');
    }
}

static void cpus_are_shared_out_among_several_workers(void **state)
{
    static const struct {
        const char *line;
        uint32_t threads;
    } rows[] = {
        { "true", 0 },
        { "--nproc-per-node=2 true", 2 },
        { "--nproc-per-node=3 true", 1 },
        { "--nproc-per-node=9 true", 1 },
    };
    struct config config;
    struct err err;
    int exit_code;
    size_t i;

    (void)state;
    (void)unsetenv("OMP_NUM_THREADS");
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(
            resolve(rows[i].line, &cpus_only, &config, &exit_code, &err), 0);
        assert_int_equal(config.job.omp_num_threads, rows[i].threads);
        config_destroy(&config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_means_the_same),
        cmocka_unit_test(parsing_stops_at_the_program),
        cmocka_unit_test(glued_short_options_work),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(a_value_may_begin_with_a_dash_where_that_is_meant),
        cmocka_unit_test(a_variable_of_a_flag_holds_a_number),
        cmocka_unit_test(only_torchruns_options_have_its_variables),
        cmocka_unit_test(the_environment_fills_in_what_is_not_given),
        cmocka_unit_test(every_row_has_a_name_and_help),
        cmocka_unit_test(counts_resolve),
        cmocka_unit_test(wrong_values_have_their_exit_codes),
        cmocka_unit_test(cpus_are_shared_out_among_several_workers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
