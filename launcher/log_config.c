#include "launcher/log_config.h"

#include "common/env_names.h"
#include "launcher/log_prefix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A choice for each worker, from -r, -t and the filter. */
static int resolve_choices(const struct options *options, uint32_t n_workers,
                           struct log_choice *choices, struct err *err)
{
    uint8_t *what = calloc(n_workers, sizeof(*what));
    bool *shown = calloc(n_workers, sizeof(*shown));
    uint32_t i;
    int rc;

    if (what == NULL || shown == NULL) {
        rc = err_sys(err, -ENOMEM, "cannot plan the workers' output");
        goto out;
    }
    rc = log_filter_parse(options->values[OPT_LOCAL_RANKS_FILTER].text,
                          n_workers, shown, err);
    if (rc == 0) {
        rc = log_spec_parse("redirects", options->values[OPT_REDIRECTS].text,
                            n_workers, what, err);
    }
    for (i = 0; i < n_workers && rc == 0; i++) {
        choices[i].redirect = what[i];
        choices[i].hidden = !shown[i];
    }
    if (rc == 0) {
        rc = log_spec_parse("tee", options->values[OPT_TEE].text, n_workers,
                            what, err);
    }
    for (i = 0; i < n_workers && rc == 0; i++) {
        choices[i].tee = what[i];
    }
out:
    free(what);
    free(shown);
    return rc;
}

int log_config_resolve(const struct options *options, uint32_t n_workers,
                       struct log_config *config_out, struct err *err)
{
    struct log_config config = { 0 };
    const char *tee_prefix = getenv(ENV_LOG_LINE_PREFIX);
    int rc;

    config.dir = options->values[OPT_LOG_DIR].text;
    if (config.dir != NULL && config.dir[0] == '\0') {
        config.dir = NULL;
    }
    config.no_files =
        config.dir != NULL && strcmp(config.dir, "/dev/null") == 0;
    config.prefix = options->values[OPT_LOG_PREFIX].text;
    config.tee_prefix = tee_prefix != NULL && tee_prefix[0] != '\0'
                            ? tee_prefix
                            : LOG_PREFIX_DEFAULT;
    config.timestamps = options_flag(options, OPT_TIMESTAMPS);
    config.filters[0] = options->values[OPT_DUPLICATE_STDOUT_FILTERS].text;
    config.filters[1] = options->values[OPT_DUPLICATE_STDERR_FILTERS].text;
    config.screen.raw = options_flag(options, OPT_RAW);
    config.screen.pty = options_flag(options, OPT_PTY);
    config.screen.prefix = config.timestamps ||
                           (config.prefix != NULL && config.prefix[0] != '\0');
    if (config.screen.raw && (config.screen.pty || config.screen.prefix)) {
        return err_set(err, -EINVAL,
                       "--raw leaves the output alone: it excludes --pty, "
                       "--log-prefix and --timestamps");
    }
    log_screen_look(&config.screen);
    config.choices = calloc(n_workers, sizeof(*config.choices));
    if (config.choices == NULL) {
        return err_sys(err, -ENOMEM, "cannot plan the workers' output");
    }
    rc = resolve_choices(options, n_workers, config.choices, err);
    if (rc < 0) {
        log_config_destroy(&config);
        return rc;
    }
    *config_out = config;
    return 0;
}

bool log_config_has_files(const struct log_config *config, uint32_t n_workers)
{
    uint32_t i;

    for (i = 0; i < n_workers && !config->no_files; i++) {
        if ((config->choices[i].redirect | config->choices[i].tee) != 0) {
            return true;
        }
    }
    return false;
}

void log_config_destroy(struct log_config *config)
{
    free(config->choices);
    config->choices = NULL;
}
