/*
 * The agent's events as they happen, where --event-log-handler asks for them.
 */
#ifndef FLAUNCH_LAUNCHER_AGENT_EVENTS_H
#define FLAUNCH_LAUNCHER_AGENT_EVENTS_H

#include "launcher/attempt.h"
#include "launcher/events.h"

struct agent_events {
    const struct config *config; /* NULL: nothing is told */
    char hostname[256];
    uint64_t begin_ns;
    uint64_t waiting_ns; /* since when a round is being waited for */
    bool placed;
    struct node_place place;
};

/* The run begins; config tells whether events are wanted. */
void agent_events_begin(struct agent_events *events,
                        const struct config *config);

/* A round is waited for from now on. */
void agent_events_wait(struct agent_events *events);

/* A round has come. */
void agent_events_round(struct agent_events *events, const struct job_env *job,
                        const struct node_place *place);

/* A worker has started. */
void agent_events_started(const struct agent_events *events,
                          const struct job_env *job,
                          const struct attempt *attempt, uint32_t worker);

/*
 * The job is over; why is a sentence where it is not by its workers' end, else
 * NULL.
 */
void agent_events_end(const struct agent_events *events,
                      const struct job_env *job, const struct attempt *attempt,
                      const char *why);

#endif
