/*
 * What of the workers' output to show, and what to write: options checked and
 * turned into values.
 */
#ifndef FLAUNCH_LAUNCHER_LOG_CONFIG_H
#define FLAUNCH_LAUNCHER_LOG_CONFIG_H

#include "launcher/log_spec.h"
#include "launcher/options.h"

struct log_config {
    struct log_choice *choices; /* one for each worker */
    struct log_screen screen;
    const char *dir;    /* --log-dir, or NULL */
    bool no_files;      /* --log-dir=/dev/null */
    const char *prefix; /* --log-prefix, or NULL: only what is teed has one */
    const char *tee_prefix; /* the template for what is teed */
    bool timestamps;
    const char *filters[2]; /* --duplicate-*-filters; NULL: none */
};

/*
 * Check and resolve; texts stay the options'. 0 or a negative errno with a
 * sentence, and then there is nothing to destroy.
 */
int log_config_resolve(const struct options *options, uint32_t n_workers,
                       struct log_config *config_out, struct err *err);

/* Whether any stream goes to a file. */
bool log_config_has_files(const struct log_config *config, uint32_t n_workers);

void log_config_destroy(struct log_config *config);

#endif
