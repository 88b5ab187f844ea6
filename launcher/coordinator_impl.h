/*
 * What the coordinator's parts share: coordinator.c has phases, rounds and
 * time, coordinator_admit.c who gets a place, coordinator_watch.c who is
 * silent, coordinator_tell.c what is told.
 */
#ifndef FLAUNCH_LAUNCHER_COORDINATOR_IMPL_H
#define FLAUNCH_LAUNCHER_COORDINATOR_IMPL_H

#include "launcher/coordinator.h"

/* What an agent is still to be told; given out in this order. */
enum pending {
    TELL_WELCOME = 1 << 0,
    TELL_ACK = 1 << 1,
    TELL_START = 1 << 2,
    TELL_FIRST_DONE = 1 << 3,
    TELL_STOP = 1 << 4,
    TELL_STATUS = 1 << 5,
    TELL_REFUSED = 1 << 6,
    TELL_END = 1 << 7,
};

static inline struct member *coordinator_row(struct coordinator *coordinator,
                                             uint32_t id)
{
    return &coordinator->members.rows[id];
}

/* --- coordinator_tell.c ------------------------------------------------- */

/* Queue bits of enum pending for an agent. */
void coordinator_tell(struct coordinator *coordinator, uint32_t id,
                      unsigned what);

/* The same for every agent in that state, but one. */
void coordinator_tell_all(struct coordinator *coordinator,
                          enum member_state state, uint32_t but, unsigned what);

/* Forget what was queued for an agent. */
void coordinator_tell_nothing(struct coordinator *coordinator, uint32_t id);

/* Say the text in status to every node that is here. */
void coordinator_say(struct coordinator *coordinator);

/* Free a row. */
void coordinator_drop(struct coordinator *coordinator, uint32_t id);

/* Whether the cause of the round's end was told by this agent. */
bool coordinator_is_cause(const struct coordinator *coordinator, uint32_t id,
                          const struct member *row);

/* --- coordinator_admit.c ------------------------------------------------ */

/* The name of the host node. */
const char *coordinator_host(struct coordinator *coordinator);

/* Refuse an agent its place, with a sentence. */
void coordinator_refuse(struct coordinator *coordinator, uint32_t id,
                        const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Give it its place, if there is one; also asked again while it is held. */
void coordinator_admit(struct coordinator *coordinator, uint32_t id,
                       uint64_t now_ms);

/* The first message of an agent. 0, -ENOMEM or -EPROTO. */
int coordinator_take_hello(struct coordinator *coordinator, uint32_t id,
                           const struct agent_msg *msg, uint64_t now_ms);

/* --- coordinator_watch.c ------------------------------------------------ */

/* Whether there is an agent that could fall silent. */
bool coordinator_watches(const struct coordinator *coordinator);

/* Look who was heard, and declare dead who was not. */
void coordinator_look(struct coordinator *coordinator, uint64_t now_ms);

/* --- coordinator.c ------------------------------------------------------ */

/* The round stops on all nodes but one, which knows. */
void coordinator_round_stop(struct coordinator *coordinator,
                            enum coordinator_reason reason, uint32_t but);

/* A node is gone; its row is REFUSED then, and goes on to be dropped. */
void coordinator_gone(struct coordinator *coordinator, uint32_t id,
                      const char *why, uint64_t now_ms);

/* Begin a round if there is nothing left to wait for. */
void coordinator_begin_maybe(struct coordinator *coordinator, uint64_t now_ms);

#endif
