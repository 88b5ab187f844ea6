#include "launcher/agent_state.h"

#include <stddef.h>

static const struct agent_move {
    enum agent_state from;
    enum agent_event on;
    enum agent_state to;
} agent_moves[] = {
    { AGENT_WAITING, AGENT_EV_START, AGENT_RUNNING },
    { AGENT_WAITING, AGENT_EV_END, AGENT_FLUSHING },
    { AGENT_RUNNING, AGENT_EV_WORKER_FAILED, AGENT_STOPPING },
    { AGENT_RUNNING, AGENT_EV_OWN_FAILURE, AGENT_KILLING },
    { AGENT_RUNNING, AGENT_EV_STOP, AGENT_STOPPING },
    { AGENT_RUNNING, AGENT_EV_HOST_LOST, AGENT_KILLING },
    { AGENT_RUNNING, AGENT_EV_GUARD_EMPTY, AGENT_DRAINING },
    { AGENT_RUNNING, AGENT_EV_GUARD_LOST, AGENT_KILLING },
    { AGENT_STOPPING, AGENT_EV_OWN_FAILURE, AGENT_KILLING },
    { AGENT_STOPPING, AGENT_EV_SECOND_SIGNAL, AGENT_KILLING },
    { AGENT_STOPPING, AGENT_EV_HOST_LOST, AGENT_KILLING },
    { AGENT_STOPPING, AGENT_EV_GUARD_EMPTY, AGENT_DRAINING },
    { AGENT_STOPPING, AGENT_EV_GUARD_LOST, AGENT_KILLING },
    { AGENT_KILLING, AGENT_EV_GUARD_EMPTY, AGENT_DRAINING },
    { AGENT_DRAINING, AGENT_EV_DRAINED, AGENT_WAITING },
    { AGENT_FLUSHING, AGENT_EV_FLUSHED, AGENT_OVER },
};

enum agent_state agent_next(enum agent_state state, enum agent_event event)
{
    size_t i;

    for (i = 0; i < sizeof(agent_moves) / sizeof(agent_moves[0]); i++) {
        if (agent_moves[i].from == state && agent_moves[i].on == event) {
            return agent_moves[i].to;
        }
    }
    return state;
}

const char *agent_state_name(enum agent_state state)
{
    static const char *const names[] = { "waiting", "running",  "stopping",
                                         "killing", "draining", "flushing",
                                         "over" };

    return names[state];
}
