/*
 * What agent and guard say to each other: codec only.
 *
 * They talk over a SOCK_SEQPACKET pair; a packet holds whole messages, each a
 * u8 type, a u32 length and that many bytes. What to start travels in a
 * shared memory file beside the SPAWN message ("plan"), since arguments and
 * environment may be larger than a packet.
 */
#ifndef FLAUNCH_LAUNCHER_GUARD_PROTO_H
#define FLAUNCH_LAUNCHER_GUARD_PROTO_H

#include "common/buf.h"

#include <stddef.h>
#include <stdint.h>

#define GUARD_PACKET_MAX ((size_t)32 * 1024) /* bytes of one packet */
#define GUARD_WORKERS_MAX 65536U
#define GUARD_CPU_BYTES_MAX 8192U /* of one mask: 65,536 CPUs */
#define GUARD_PLAN_MAX ((size_t)512 * 1024 * 1024)

enum guard_msg_type {
    /* agent to guard */
    GUARD_SPAWN = 1, /* count workers; a plan of size bytes comes along */
    GUARD_SIGNAL,    /* signo once to each worker's main process */
    GUARD_STOP,      /* signo, then KILL after grace_ms; 0: KILL at once */
    GUARD_GROUPS,    /* signo to every worker's process group (STOP, CONT) */
    GUARD_DRAINED,   /* the workers' output needs no copy by the guard */
    GUARD_LEASE,     /* workers may run until at_ns (CLOCK_BOOTTIME) */
    /* guard to agent */
    GUARD_SPAWNED, /* worker, pid, at_ns; count read ends come along */
    GUARD_FAILED,  /* worker, step, error: it never ran */
    GUARD_EXITED,  /* worker, pid, status, at_ns, peak_kib */
    GUARD_LEFT,    /* pid, state, name, wchan: it would not die */
    GUARD_FENCED,  /* the lease has ended: everything is being killed */
    GUARD_EMPTY,   /* no descendant is left: another SPAWN may come */
};

/* What a worker was at when it failed to start. */
enum guard_step {
    GUARD_STEP_FORK,
    GUARD_STEP_SETUP,
    GUARD_STEP_LOG,  /* opening the file that is its output */
    GUARD_STEP_BIND, /* to its CPUs */
    GUARD_STEP_EXEC,
};

/* Only the fields named at the type count; the others are 0. */
struct guard_msg {
    enum guard_msg_type type;
    uint32_t worker; /* local rank */
    uint32_t pid;
    uint32_t count;
    uint32_t signo;
    uint32_t status; /* as wait(2) has it */
    uint32_t step;
    uint32_t error; /* errno, positive */
    uint32_t state; /* the letter of proc(5) */
    uint64_t size;
    uint64_t grace_ms;
    uint64_t at_ns; /* monotonic, but for LEASE */
    uint64_t peak_kib;
    char name[32];
    char wchan[32];
};

/* Append a message: 0 or -ENOMEM. */
int guard_msg_encode(struct buf *out, const struct guard_msg *msg);

/*
 * Take the next message off reader: 1 with msg_out, 0 at the end, -EPROTO for
 * what is no message.
 */
int guard_msg_decode(struct reader *reader, struct guard_msg *msg_out);

/*
 * How many bytes of out make the next packet: whole messages only, and one
 * that tells of a process (SPAWNED, LEFT) is its last, which is copied to
 * last_out: descriptors and credentials belong to that one. Its type is
 * GUARD_EMPTY where there is none.
 */
size_t guard_packet_len(const struct buf *out, struct guard_msg *last_out);

/*
 * What to start: every worker runs path with its arguments; its environment is
 * base_env and then its own strings. All arrays end with NULL.
 */
#define GUARD_STDIN_NONE UINT32_MAX      /* no worker */
#define GUARD_STDIN_ALL (UINT32_MAX - 1) /* every worker */

/* What a worker's stdout or stderr is. */
enum guard_stream_kind {
    GUARD_STREAM_OURS,   /* our own descriptor of that number */
    GUARD_STREAM_PIPE,   /* a pipe to us */
    GUARD_STREAM_PTY,    /* a pseudo-terminal of ours */
    GUARD_STREAM_FILE,   /* a file of its own, appended to */
    GUARD_STREAM_JOINED, /* stderr only: the same as stdout */
};

struct guard_stream {
    uint32_t kind;    /* enum guard_stream_kind */
    uint32_t shown;   /* a pipe or pty: whether it belongs on our own stream */
    const char *path; /* of a file, else "" */
};

#define GUARD_OUT 0 /* index of a worker's stdout */
#define GUARD_ERR 1

struct guard_plan {
    uint32_t stdin_worker; /* who gets our standard input itself; the others
                            * get /dev/null */
    const char *path;
    const char *keep; /* names of processes to leave alone at the end */
    char ***argvs;    /* the arguments of each worker, or of all */
    uint32_t n_argvs; /* n_workers, or 1: they are the same for all */
    char **base_env;
    size_t n_base_env;
    uint32_t n_workers;
    char ***worker_env;                /* n_workers arrays */
    struct guard_stream (*streams)[2]; /* n_workers pairs */
    const uint8_t *cpus;               /* n_workers masks of cpu_bytes, as for
                                        * sched_setaffinity */
    uint32_t cpu_bytes;                /* 0: none is bound */
};

/* Append the plan: 0 or -ENOMEM. */
int guard_plan_encode(struct buf *out, const struct guard_plan *plan);

/*
 * Read a plan. Strings stay in data, which must live as long; arrays belong
 * to plan_out, see guard_plan_destroy. 0, or -EPROTO (also without memory).
 */
int guard_plan_decode(const uint8_t *data, size_t len,
                      struct guard_plan *plan_out);

/* Free what guard_plan_decode made. */
void guard_plan_destroy(struct guard_plan *plan);

#endif
