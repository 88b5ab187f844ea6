/*
 * What agents and the coordinator say to each other: codec only.
 *
 * Each side begins with a preface of 8 bytes: "FLCH" and its version. Then
 * frames: u32 length of the rest, u8 type, u64 incarnation, u64 round, and the
 * type's fields. A text is u32 length and that many bytes, the last of them 0
 * and no other. A round of 0 stands for none.
 */
#ifndef FLAUNCH_LAUNCHER_AGENT_PROTO_H
#define FLAUNCH_LAUNCHER_AGENT_PROTO_H

#include "common/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGENT_VERSION 1U
#define AGENT_PREFACE_LEN 8
#define AGENT_FRAME_MAX ((size_t)64 * 1024) /* length field included */

/* Bytes of a text, its 0 included. */
#define AGENT_HOST_MAX ((size_t)256)
#define AGENT_RUN_ID_MAX ((size_t)1024)
#define AGENT_ROLE_MAX ((size_t)256)
#define AGENT_TEXT_MAX ((size_t)2048)
#define AGENT_REPORT_MAX ((size_t)48 * 1024)

#define AGENT_NODES_MAX 65536U
#define AGENT_WORKERS_MAX 65536U
#define AGENT_NO_RANK UINT32_MAX

enum agent_msg_type {
    /* agent to coordinator */
    AGENT_HELLO = 1, /* who comes: its place is asked for */
    AGENT_HEARTBEAT, /* seq */
    AGENT_FAILED,    /* something failed here; our workers are being stopped */
    AGENT_ENDED,     /* nothing of our workers and their children is left */
    AGENT_STOP_JOB,  /* a signal or time limit here stops the job */
    AGENT_LEAVE,     /* a signal here makes this node leave */
    AGENT_BYE,       /* END is heard */
    /* both ways */
    AGENT_FIRST_DONE, /* a rank has ended well, the first of this round */
    /* coordinator to agent */
    AGENT_WELCOME, /* you are counted among the nodes that are here */
    AGENT_REFUSED, /* and not */
    AGENT_ACK,     /* of the heartbeat with seq */
    AGENT_STATUS,  /* a line to say */
    AGENT_START,   /* a round begins: run your workers */
    AGENT_STOP,    /* stop them, and say ENDED */
    AGENT_END,     /* the job is over: report, and leave */
};

/* Only the fields of the type count (see layouts in agent_proto.c); the others
 * are 0, texts "". */
struct agent_msg {
    enum agent_msg_type type;
    uint64_t incarnation; /* of the agent, sender or receiver; random */
    uint64_t round;       /* counted from 1 */
    uint64_t seq;
    uint64_t lease_ms; /* how long workers may run after a heartbeat */
    uint32_t min_nodes;
    uint32_t max_nodes;
    uint32_t node_rank; /* AGENT_NO_RANK: any */
    uint32_t n_workers;
    uint32_t code;     /* exit code */
    uint32_t signo;    /* 0: none */
    uint32_t at_once;  /* no grace */
    uint32_t for_good; /* no restart can help */
    uint32_t mine;     /* the cause of the end was told by this agent */
    uint32_t said;     /* text was told with STOP already */
    /* Of ENDED: workers that were stopped by us, ended well, failed. */
    uint32_t n_stopped;
    uint32_t n_done;
    uint32_t n_failed;
    /* Of START. */
    uint32_t restarts;     /* used up so far */
    uint32_t max_restarts; /* of the job */
    uint32_t changes;      /* rounds since then that used up none */
    uint32_t group_rank;
    uint32_t n_nodes;
    uint32_t base_rank; /* of this node's first worker */
    uint32_t world_size;
    uint32_t role_base_rank;
    uint32_t role_world_size;
    uint32_t port;       /* of the store */
    const char *host;    /* name of the node */
    const char *run_id;  /* of the job */
    const char *role;    /* of its workers */
    const char *address; /* of the store; "": where you reached it */
    const char *text;    /* a sentence or line */
    const char *report;  /* lines, or "" */
};

/* A message with no field set: numbers 0, texts "". */
struct agent_msg agent_msg_init(enum agent_msg_type type);

/* Append our preface: 0 or -ENOMEM. */
int agent_preface_encode(struct buf *out);

/*
 * Look at a peer's first bytes: 1 with version_out when they are a preface, 0
 * when they may become one, -EPROTO when they are something else's.
 */
int agent_preface_decode(const uint8_t *data, size_t len,
                         uint32_t *version_out);

/* Append a frame; a text that is too long is cut. 0 or -ENOMEM. */
int agent_msg_encode(struct buf *out, const struct agent_msg *msg);

/*
 * Take the next frame off reader: 1 with msg_out, whose texts are borrowed
 * from the reader's bytes; 0 when it is not complete (pos is unchanged); or
 * -EPROTO for what is no frame, as soon as that shows.
 */
int agent_msg_decode(struct reader *reader, struct agent_msg *msg_out);

/* "HELLO". */
const char *agent_msg_name(enum agent_msg_type type);

#endif
