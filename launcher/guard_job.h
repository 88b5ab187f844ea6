/*
 * The guard's workers: which processes belong to each, how a stop goes on,
 * and when nothing is left. Decides and signals; knows no socket.
 *
 * A worker is its main process, which leads a session and a group of its own.
 * Its end comes in three steps: the main process (and, where that is a shell,
 * the shell's children in the group); the rest of its group; and, when all
 * workers are through, whatever has left its group.
 */
#ifndef FLAUNCH_LAUNCHER_GUARD_JOB_H
#define FLAUNCH_LAUNCHER_GUARD_JOB_H

#include "launcher/guard_reap.h"
#include "launcher/guard_spawn.h"

/* The rest of a group has this long after TERM where no stop is under way. */
#define GUARD_GROUP_GRACE_MS 30000
/* What has left its worker's group has this long between TERM and KILL. */
#define GUARD_STRAY_GRACE_MS 1000

enum guard_phase {
    GUARD_RUNNING,  /* workers run, or none was started yet */
    GUARD_STOPPING, /* told to stop; KILL at kill_ms */
    GUARD_STRAYS,   /* workers are through; what left its group got TERM */
    GUARD_KILLING,  /* everything gets KILL */
    GUARD_DONE,     /* no descendant is left */
    GUARD_STUCK,    /* something survived ten seconds of SIGKILL */
};

struct guard_worker {
    pid_t pid;              /* 0: never started */
    bool exited;            /* the main process */
    bool group_empty;       /* nothing of its group is left */
    uint64_t group_kill_ms; /* when the rest of the group gets KILL */
};

/*
 * Told of each worker that started (with msg->count read ends of its output,
 * which stay the job's), failed to start or ended.
 */
typedef void guard_job_fn(const struct guard_msg *msg, const int *fds,
                          void *arg);

struct guard_job {
    enum guard_phase phase;
    struct guard_worker *workers;
    uint32_t n_workers;
    uint32_t n_forked;  /* how many were forked or given up */
    uint32_t n_through; /* exited, and their groups are empty */
    uint64_t kill_ms;   /* GUARD_STOPPING and GUARD_STRAYS */
    unsigned pause_ms;  /* until the next look at what must end */
    char *keep;         /* names to leave alone, also after the job; or NULL */
    struct guard_plan plan;
    struct guard_spawner spawner;
    struct guard_streams streams;
    struct reaper reaper;
    guard_job_fn *tell;
    void *arg;
};

/* Prepare; tell runs for SPAWNED, FAILED and EXITED. */
int guard_job_init(struct guard_job *job, const struct inherited *inherited,
                   guard_job_fn *tell, void *arg);

/* Take what to start; the plan becomes the job's. 0 or a negative errno. */
int guard_job_begin(struct guard_job *job, struct guard_plan *plan);

/*
 * Forget a job that is done, so that another one may begin; what its workers
 * wrote is kept until then.
 */
void guard_job_reset(struct guard_job *job);

/*
 * Signal each main process once. A shell itself gets it only if it has a trap
 * for it: it would die of it, and its children with their work undone.
 */
void guard_job_forward(struct guard_job *job, int signo);

/* Signal every worker's process group: SIGSTOP, SIGCONT. */
void guard_job_groups(struct guard_job *job, int signo);

/* Begin to stop, or, with grace 0 or at the agent's end, to kill. */
void guard_job_stop(struct guard_job *job, int signo, uint64_t grace_ms);
void guard_job_kill(struct guard_job *job);

/*
 * Go on: fork a few more, reap, signal what is due. Call it after every
 * event and when the time it returns (milliseconds for poll, -1: for ever) is
 * over.
 */
int guard_job_step(struct guard_job *job);

#endif
