/*
 * The options that are about the store, checked and turned into its limits.
 */
#ifndef FLAUNCH_LAUNCHER_STORE_OPTIONS_H
#define FLAUNCH_LAUNCHER_STORE_OPTIONS_H

#include "common/err.h"
#include "common/store_conf.h"
#include "launcher/options.h"

/* 0, or -EINVAL with a sentence. */
int store_options_resolve(const struct options *options,
                          struct store_conf *conf_out, struct err *err);

#endif
