/*
 * flaunch --store-only: a store, and nothing else.
 */
#ifndef FLAUNCH_LAUNCHER_STORE_ONLY_H
#define FLAUNCH_LAUNCHER_STORE_ONLY_H

#include "common/err.h"
#include "launcher/options.h"

/*
 * Serve until SIGTERM, SIGINT or SIGHUP; stdout gets one line, HOST:PORT, once
 * clients can connect. The sockets are those that the parent left (systemd's
 * LISTEN_FDS), else one at --bind, by default 127.0.0.1, and --master-port, by
 * default a free one.
 *
 * Returns the exit code; where that is not 0, err has the sentence.
 */
int store_only_run(const struct options *options, const char *hostname,
                   struct err *err);

#endif
