/*
 * The nodes that the coordinator knows: a table of plain data, their order and
 * ranks, and the roll call. An agent is known by the number of its row.
 */
#ifndef FLAUNCH_LAUNCHER_MEMBERS_H
#define FLAUNCH_LAUNCHER_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The agent of the host node itself: always the first row. */
#define MEMBER_LOCAL 0U
#define MEMBER_NONE UINT32_MAX

enum member_state {
    MEMBER_FREE,    /* nobody: the row is to be had */
    MEMBER_NEW,     /* connected; it has not said who it is */
    MEMBER_HELD,    /* wants the place of one that may be dead */
    MEMBER_HERE,    /* waits for a round */
    MEMBER_RUNNING, /* its workers run, or are being stopped */
    MEMBER_ENDED,   /* of this round nothing of its workers is left */
    MEMBER_REFUSED, /* is told that it has no place, and goes */
    MEMBER_OVER,    /* is told that the job is over, and goes */
};

struct member {
    enum member_state state;
    bool leaving;        /* has asked to leave */
    bool quiet;          /* suspected: not heard of for a while */
    bool was_in;         /* in the last round */
    uint32_t asked_rank; /* AGENT_NO_RANK: any */
    uint32_t min_nodes;  /* as it was started with */
    uint32_t max_nodes;
    uint32_t n_workers;
    uint32_t group_rank;
    uint32_t base_rank;
    uint32_t role_base_rank;
    uint32_t role_world_size;
    uint64_t incarnation;
    uint64_t arrival;  /* counts up */
    uint64_t since_ms; /* when it connected */
    uint64_t heard_ms;
    uint64_t seq;     /* of its newest heartbeat */
    unsigned pending; /* what it is still to be told; the coordinator's */
    uint32_t next_pending;
    char *host;   /* NULL until it has said */
    char *run_id; /* the same */
    char *role;
    char *note; /* why it is refused */
};

struct members {
    struct member *rows;
    uint32_t n; /* rows, free ones too */
    uint32_t n_used;
    uint32_t cap;
    uint32_t free_head; /* MEMBER_NONE: none; linked by next_pending */
    uint64_t arrivals;
    uint32_t n_in;   /* HERE, RUNNING or ENDED */
    uint32_t n_here; /* HERE or ENDED */
    uint32_t n_running;
    uint32_t n_new; /* NEW or HELD */
    uint32_t n_over;
    uint32_t *owners; /* who asked for each node rank, max_nodes long */
    uint32_t max_nodes;
};

/* 0 or -ENOMEM. */
int members_init(struct members *members, uint32_t max_nodes);

void members_destroy(struct members *members);

/* A row for somebody NEW: its number, or -ENOMEM. */
int64_t members_add(struct members *members, uint64_t now_ms);

/* Every change of state goes through this: it keeps the counts. */
void members_set(struct members *members, uint32_t id, enum member_state state);

/* Free a row. */
void members_drop(struct members *members, uint32_t id);

/*
 * Choose who takes part in a round, of all that are HERE, max_nodes at most:
 * the host node, then who was in the last round, then by arrival. Gives each
 * its group_rank and base_ranks; they are RUNNING afterwards.
 *
 * fixed           a rank that was asked for is had to the number; else ranks
 *                 close up
 * n_out, size_out nodes and workers
 *
 * Returns 0 or -ENOMEM.
 */
int members_seal(struct members *members, bool fixed, uint32_t *n_out,
                 uint32_t *size_out);

/* Who holds a node rank, or MEMBER_NONE. */
uint32_t members_owner(const struct members *members, uint32_t rank);

/* "node 1 (host-b)", or "host-b" where it has no number. */
void member_name(const struct member *member, char *text_out, size_t size);

/*
 * "2 of 4 nodes here (0: host-a, 2: host-c); missing: 1, 3".
 *
 * min_nodes  of the job; where it is less than max_nodes: "1 of 2 to 4"
 */
void members_roll_call(const struct members *members, uint32_t min_nodes,
                       char *text_out, size_t size);

#endif
