/*
 * What happens to the job as lines of JSON, in torchrun's form: the agent's
 * --event-log-handler=console. Text only.
 */
#ifndef FLAUNCH_LAUNCHER_EVENTS_H
#define FLAUNCH_LAUNCHER_EVENTS_H

#include "common/buf.h"
#include "launcher/ranks.h"

#include <stdbool.h>

/* What all events of a run have in common. */
struct event_job {
    const char *run_id;
    const char *role;
    const char *hostname;
    const char *backend;     /* of the rendezvous: "static", "c10d" */
    const char *entry_point; /* the program's file name */
    bool placed;             /* the two below are known */
    uint32_t group_rank;
    uint32_t group_world_size;
    uint32_t restarts;
    uint64_t seconds; /* since the start */
};

/* The worker that an event is of. */
struct event_worker {
    struct place place;
    uint32_t pid;
    bool failed;
    int exit_code;     /* negative: the signal; only of one that failed */
    const void *error; /* its error file as JSON (json_t), or NULL */
};

struct event {
    const char *state;                 /* "RENDEZVOUS", "START", "FAILED" */
    const struct event_worker *worker; /* NULL: the agent itself */
    double duration_ms;                /* negative: none */
    const char *error;                 /* why the agent failed, or NULL */
};

/* Append the line, with its newline: 0 or -ENOMEM. */
int event_print(const struct event_job *job, const struct event *event,
                struct buf *out);

#endif
