/*
 * What the agent's parts share: agent.c has its life and its states,
 * agent_round.c what it says to the coordinator and hears from it,
 * agent_guard.c the guard and its workers, agent_stop.c signals and time
 * limits, agent_watch.c the workers' own timers and the health check.
 */
#ifndef FLAUNCH_LAUNCHER_AGENT_IMPL_H
#define FLAUNCH_LAUNCHER_AGENT_IMPL_H

#include "launcher/agent.h"
#include "launcher/agent_events.h"
#include "launcher/agent_report.h"
#include "launcher/agent_state.h"
#include "launcher/guard_link.h"
#include "launcher/health.h"
#include "launcher/limits.h"
#include "launcher/patience.h"
#include "launcher/rdzv.h"
#include "launcher/signals.h"
#include "launcher/stacks.h"
#include "launcher/streams.h"
#include "launcher/timer_fifo.h"

struct agent {
    const struct agent_setup *setup;
    uv_loop_t loop;
    bool open; /* the handles are there */
    struct signals signals;
    struct guard_link link;
    uv_timer_t slow_timer;     /* a stop takes long */
    uv_timer_t baseline_timer; /* look what the kernel has counted so far */
    struct limits limits;
    struct streams streams;
    struct patience patience;
    struct stacks stacks;
    struct rdzv rdzv;
    struct agent_events events;
    struct timer_fifo timers;
    uv_timer_t overdue_timer; /* whose timer expired, and still runs */
    struct health health;
    enum agent_state state;
    /* Of the round. */
    struct job_env job;
    struct attempt attempt;
    uint64_t round;               /* 0: none yet */
    bool first_done;              /* of this node, and told */
    bool some_done;               /* a rank has ended well, here or elsewhere */
    char address[AGENT_HOST_MAX]; /* MASTER_ADDR */
    /* How it ends. */
    int stop_signal;
    unsigned n_stop_signals;
    char reason[256]; /* why we stopped the job; "" */
    int own_failure;
    bool timed_out;
    bool leaving;    /* this node leaves a job that goes on */
    bool guard_gone; /* ended and reaped by us */
    bool stuck;      /* something survived SIGKILL */
    bool have_end;
    struct agent_end end;
    char end_text[AGENT_TEXT_MAX];
    struct buf end_report;
    bool stacks_wanted; /* before a time limit stops the job */
    int64_t oom_kills_before;
    bool gave_up;     /* on a reader that does not read */
    size_t unwritten; /* bytes, at the end */
};

/* --- agent.c ------------------------------------------------------------ */

/* Move on, and do what entering the new state means. */
void agent_event(struct agent *agent, enum agent_event event, int signo);

/* Output is being waited for: how long? */
void agent_output_wait(struct agent *agent);

/* How this node's part has ended so far. */
struct outcome agent_outcome(const struct agent *agent);

/* --- agent_round.c ------------------------------------------------------ */

extern const struct rdzv_events agent_rdzv_events;

/* flaunch itself cannot go on here; text is a sentence. */
void agent_fail(struct agent *agent, const char *text);

/* A worker has failed: the first of this node. */
void agent_tell_failure(struct agent *agent);

/* Nothing of our workers is left. */
void agent_tell_ended(struct agent *agent);

/* A rank here has ended well. */
void agent_tell_done(struct agent *agent);

/*
 * Stop the job, or, where this node may, leave it.
 *
 * code, signo  as in AGENT_STOP_JOB; signo 0: TERM
 */
void agent_ask_stop(struct agent *agent, int code, int signo, bool at_once,
                    const char *why);

/* Follow the output of the attempt's workers: 0 or a negative errno. */
int agent_follow(struct agent *agent);

/* End without another word from the coordinator. */
void agent_end_alone(struct agent *agent, int code);

/* --- agent_guard.c ------------------------------------------------------ */

extern const struct guard_link_events agent_link_events;

void agent_send_stop(struct agent *agent, int signo, uint64_t grace_ms);
void agent_send_signal(struct agent *agent, enum guard_msg_type type,
                       int signo);

/* Reap what is ours to reap but not ours to watch. */
void agent_reap_others(struct agent *agent);

/* Wait for the guard's end, so that nothing of us outlives us. */
void agent_wait_guard(struct agent *agent);

/* --- agent_watch.c ------------------------------------------------------ */

/* 0 or a negative errno with a sentence. */
int agent_watch_start(struct agent *agent, struct err *err);

/* The workers are gone, and their timers with them. */
void agent_watch_forget(struct agent *agent);

void agent_watch_stop(struct agent *agent);

/* --- agent_stop.c ------------------------------------------------------- */

/* Say that the workers are being stopped, and when they are killed. */
void agent_say_stopping(struct agent *agent, const char *why);

/* Whoever waits for a stop learns what it waits for. */
void agent_slow_stop(uv_timer_t *timer);

void agent_on_signal(int signo, void *arg);

/* A time limit of ours is over. */
void agent_limit_over(const char *why, void *arg);

/* As a program that writes to a pipe without a reader: it ends. */
void agent_reader_gone(struct agent *agent);

#endif
