/*
 * This node's run: ties guard, workers, store and signals together.
 */
#ifndef FLAUNCH_LAUNCHER_AGENT_H
#define FLAUNCH_LAUNCHER_AGENT_H

#include "common/net.h"
#include "launcher/attempt.h"
#include "launcher/config.h"
#include "launcher/guard.h"
#include "launcher/inherited.h"

/* What a run works with; all of it is the caller's. */
struct agent_setup {
    const struct config *config;
    const struct inherited *inherited;
    struct guard_process guard;
    struct run_files *files;
    struct net_listeners listeners; /* where this node is to host, else none;
                                       the agent closes them */
};

/*
 * Run the job to its end: start the workers, watch them, stop them, wait
 * until nothing is left. Returns the exit code of flaunch.
 */
int agent_run(const struct agent_setup *setup);

#endif
