/*
 * The end of a run as people and programs read it: the report on the screen
 * and the error file, from what agent, attempt, streams and kernel know.
 */
#ifndef FLAUNCH_LAUNCHER_AGENT_REPORT_H
#define FLAUNCH_LAUNCHER_AGENT_REPORT_H

#include "launcher/attempt.h"
#include "launcher/failure.h"
#include "launcher/streams.h"

struct agent_report {
    const struct outcome *outcome;
    const struct job_env *job;
    const struct attempt *attempt;
    struct streams *streams;
    const char *reason;       /* why flaunch stopped the job; "" */
    int64_t oom_kills_before; /* -1: not known */
};

/*
 * Say how the job ended, where it failed, and write the error file where one
 * is asked for (TORCHELASTIC_ERROR_FILE).
 */
void agent_report_say(const struct agent_report *from);

#endif
