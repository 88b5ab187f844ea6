/*
 * --dry-run and --explain: what would be started, and where each value came
 * from.
 */
#ifndef FLAUNCH_LAUNCHER_EXPLAIN_H
#define FLAUNCH_LAUNCHER_EXPLAIN_H

#include "launcher/config.h"

#include <stdio.h>

/* Print the resolved plan: 0 or -ENOMEM. */
int explain_plan(const struct config *config, char *const *environment,
                 FILE *file);

/* Print where each value came from. */
void explain_sources(const struct options *options, const struct config *config,
                     FILE *file);

#endif
