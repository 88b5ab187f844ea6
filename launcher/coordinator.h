/*
 * Who takes part in the job, in what order, when a round begins and stops,
 * whether it is started again, and how the job ends: a pure state machine.
 *
 * It runs on the host node. What agents say (struct agent_msg) and time come
 * in; messages for agents go out through coordinator_next, which is to be
 * called until it has no more after each call of another function here. The
 * agent of the host node itself is MEMBER_LOCAL and is spoken to alike; it
 * gets END last.
 *
 * tests/model has the same machine in Promela.
 */
#ifndef FLAUNCH_LAUNCHER_COORDINATOR_H
#define FLAUNCH_LAUNCHER_COORDINATOR_H

#include "launcher/agent_proto.h"
#include "launcher/members.h"
#include "launcher/restarts.h"

/* Not heard of for this long: suspected. */
#define COORDINATOR_SUSPECT_MS 3000
/* Between the loss of a node and the next round: its guard kills meanwhile. */
#define COORDINATOR_FENCE_MS 1000
/* A connection that does not say who it is. */
#define COORDINATOR_HELLO_MS 5000
/* Between two looks at who was heard; a later look means that we ourselves
 * were held up. */
#define COORDINATOR_LOOK_MS 500
/* Between two words on the loss of a node that had only joined. */
#define COORDINATOR_LOST_MS 1000
/* Between two roll calls. */
#define COORDINATOR_SAY_MS 10000
/* How long other agents may take to hear that a stop signal ended the job
 * before any worker ran: Ctrl-C is answered at once. */
#define COORDINATOR_LEAVE_MS 500
/* Connections that have not said who they are, at once. */
#define COORDINATOR_NEW_MAX 16384

enum coordinator_phase {
    COORDINATOR_JOINING,
    COORDINATOR_RUNNING,
    COORDINATOR_STOPPING, /* until every node of the round has said ENDED */
    COORDINATOR_ENDING,   /* until every other agent has heard of the end */
    COORDINATOR_ENDED,
};

/* Why a round stops; a greater one overrules. */
enum coordinator_reason {
    REASON_NONE,
    REASON_CHANGE, /* nodes come or go: another round, and no restart used up */
    REASON_FAILURE,
    REASON_STOP, /* for good: a signal, a time limit */
};

struct coordinator_config {
    uint32_t min_nodes;
    uint32_t max_nodes;
    const char *run_id; /* of the job; the caller's */
    uint32_t max_restarts;
    uint64_t backoff_ms; /* the first wait */
    uint64_t join_ms;
    uint64_t last_call_ms; /* from MIN nodes to a round with fewer than MAX */
    uint64_t lease_ms;     /* T: a node that is not heard of is dead then */
    const char *address;   /* MASTER_ADDR; "": where an agent reached us */
    uint16_t port;
};

struct coordinator {
    struct coordinator_config config;
    struct members members;
    struct restarts restarts;
    enum coordinator_phase phase;
    enum coordinator_reason reason;
    uint64_t round;   /* the newest; 0: none yet */
    uint32_t changes; /* rounds that used up no restart, since the last one */
    uint32_t n_nodes; /* of the round */
    uint32_t world_size;
    uint64_t began_ms;     /* the round */
    uint64_t earliest_ms;  /* the next round */
    uint64_t join_by_ms;   /* phase JOINING */
    uint64_t last_call_ms; /* absolute; 0: MIN is not reached */
    uint64_t say_ms;       /* the next roll call */
    uint64_t said_lost_ms; /* a node that had only joined was lost */
    uint64_t look_ms;      /* when coordinator_tick last looked */
    uint64_t end_by_ms;    /* phase ENDING */
    bool some_done;        /* a node's workers have all ended well */
    bool first_done;       /* a rank has */
    bool for_good;
    /* What went wrong first, and where. */
    uint32_t cause_member;
    uint64_t cause_incarnation;
    uint32_t cause_code;
    char cause[AGENT_TEXT_MAX];
    struct buf report; /* lines; with a 0 behind them when the job ends */
    /* A stop of the job. */
    uint32_t stop_code;
    uint32_t stop_signo;
    bool stop_at_once;
    bool stop_said;           /* to nodes that ran workers */
    char why[AGENT_TEXT_MAX]; /* the round stops */
    /* Of the round, from ENDED. */
    uint32_t own_code; /* the first worker's own code after a stop */
    bool all_zero;
    uint32_t n_stopped;
    uint32_t n_done;
    uint32_t n_failed;
    uint32_t end_code;
    char status[AGENT_TEXT_MAX];
    uint32_t pending_head; /* rows with something to be told, in order */
    uint32_t pending_tail;
    struct agent_msg msg;         /* what coordinator_next gave last */
    char address[AGENT_HOST_MAX]; /* where an agent reached us */
    uint64_t n_messages;          /* given out; for benches */
};

/*
 * Begin, with MEMBER_LOCAL connected: its HELLO is the first thing to come.
 * Returns 0 or -ENOMEM.
 */
int coordinator_init(struct coordinator *coordinator,
                     const struct coordinator_config *config, uint64_t now_ms);

void coordinator_destroy(struct coordinator *coordinator);

/*
 * Somebody has connected: the row's number, or a negative errno: close it
 * then.
 *
 * address  of ours that it reached; "" where that is unknown
 */
int64_t coordinator_connected(struct coordinator *coordinator,
                              const char *address, uint64_t now_ms);

/* Take in what an agent says. 0, or -EPROTO: cut it off. */
int coordinator_take(struct coordinator *coordinator, uint32_t id,
                     const struct agent_msg *msg, uint64_t now_ms);

/* A connection has ended, and why: "its connection was closed". */
void coordinator_lost(struct coordinator *coordinator, uint32_t id,
                      const char *why, uint64_t now_ms);

/*
 * Time has passed. Returns when to call again (CLOCK_NEVER: only after
 * something else has happened), which other calls may make earlier: ask
 * coordinator_due.
 */
uint64_t coordinator_tick(struct coordinator *coordinator, uint64_t now_ms);
uint64_t coordinator_due(const struct coordinator *coordinator);

/*
 * The next message, valid until the next call: true, with whom it is for.
 * REFUSED is the last that is sent to an agent: close its connection then.
 */
bool coordinator_next(struct coordinator *coordinator, uint32_t *id_out,
                      const struct agent_msg **msg_out);

#endif
