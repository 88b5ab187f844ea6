/*
 * A command line, an argument a line; a line that begins with @ is an
 * environment variable's value for every option.
 */
#include "launcher/options.h"
#include "tests/fuzz/fuzz.h"

#define ARGS_MAX 32

static const char *env_of(const char *name, void *arg)
{
    (void)name;
    return arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char program[] = "flaunch";
    char *text = fuzz_text(data, size);
    char *argv[ARGS_MAX + 1] = { program };
    char *value = NULL;
    char *rest = text;
    char *line;
    struct options options;
    struct err err = { 0 };
    char from[80];
    int argc = 1;
    int id;
    int rc;

    while ((line = strsep(&rest, "\n")) != NULL && argc < ARGS_MAX) {
        if (line[0] == '@') {
            value = line + 1;
        } else {
            argv[argc++] = line;
        }
    }
    argv[argc] = NULL;
    rc = options_parse(argc, argv, env_of, value, &options, &err);
    if (rc < 0) {
        CHECK(err.text[0] != '\0');
    } else {
        CHECK(options.program >= argv && options.program <= argv + argc);
        for (id = 0; id < N_OPTIONS; id++) {
            options_source_name(&options, (enum option_id)id, from,
                                sizeof(from));
            CHECK(from[0] != '\0');
            (void)options_flag(&options, (enum option_id)id);
        }
    }
    free(text);
    return 0;
}
