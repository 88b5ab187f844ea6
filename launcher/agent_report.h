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
    int64_t oom_kills_before; /* -1: not known */
};

/* How the job ended, as the coordinator says. */
struct agent_end {
    int code;
    const char *text;   /* what went wrong, or why it was stopped; "" */
    const char *report; /* lines on that; "" */
    bool said;          /* text stands on the screen already */
};

/*
 * What this node tells of its failure: lines for the report of the job, with a
 * 0 at the end; nothing where no worker of ours failed. 0 or -ENOMEM.
 */
int agent_report_make(const struct agent_report *from, struct buf *text_out);

/*
 * Say how the job ended, and write the error file where one is asked for
 * (TORCHELASTIC_ERROR_FILE).
 */
void agent_report_say(const struct agent_report *from,
                      const struct agent_end *end);

#endif
