/*
 * Options of torchrun that have little or no effect here: checked as torchrun
 * would, and refused where only Python could do what they ask.
 */
#ifndef FLAUNCH_LAUNCHER_TORCHRUN_OPTIONS_H
#define FLAUNCH_LAUNCHER_TORCHRUN_OPTIONS_H

#include "launcher/options.h"

/* What torchrun's event handlers mean here. */
enum event_log {
    EVENT_LOG_NONE,
    EVENT_LOG_CONSOLE
};

/* --event-log-handler: 0 or -EINVAL with a sentence. */
int torchrun_options_events(const struct options *options,
                            enum event_log *log_out, struct err *err);

/*
 * Check --monitor-interval, --start-method and --logs-specs. Returns 0, or
 * -EINVAL with a sentence.
 */
int torchrun_options_check(const struct options *options, struct err *err);

#endif
