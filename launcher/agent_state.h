/*
 * The agent's states and events as a table.
 */
#ifndef FLAUNCH_LAUNCHER_AGENT_STATE_H
#define FLAUNCH_LAUNCHER_AGENT_STATE_H

enum agent_state {
    AGENT_WAITING,  /* no worker: for the coordinator's word */
    AGENT_RUNNING,  /* workers start and run */
    AGENT_STOPPING, /* they were told to stop, and have their grace */
    AGENT_KILLING,  /* they get SIGKILL */
    AGENT_DRAINING, /* no process is left; what they wrote is read */
    AGENT_FLUSHING, /* the last words are on their way to the screen */
    AGENT_OVER,     /* the job is over */
};

enum agent_event {
    AGENT_EV_START, /* a round begins, says the coordinator */
    AGENT_EV_WORKER_FAILED,
    AGENT_EV_OWN_FAILURE, /* flaunch itself cannot go on */
    AGENT_EV_STOP,        /* a signal, a time limit or another node asks */
    AGENT_EV_SECOND_SIGNAL,
    AGENT_EV_HOST_LOST,   /* so are our ranks */
    AGENT_EV_GUARD_EMPTY, /* no descendant is left, says the guard */
    AGENT_EV_GUARD_LOST,  /* it ended without saying so */
    AGENT_EV_DRAINED,     /* everything the workers wrote is read */
    AGENT_EV_END,         /* the job is over, says the coordinator */
    AGENT_EV_FLUSHED,     /* all is written, or given up */
};

/* The state after event; the same where the event changes nothing. */
enum agent_state agent_next(enum agent_state state, enum agent_event event);

const char *agent_state_name(enum agent_state state);

#endif
