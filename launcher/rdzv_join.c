#include "launcher/rdzv_join.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/net.h"
#include "launcher/agent_link.h"
#include "launcher/exit_status.h"
#include "launcher/lookup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PAUSE_FIRST_MS 100
/* Nothing is said of the first tries: others may be about to start. */
#define SAY_FIRST_MS 2000
#define SAY_MS 10000
/* Heartbeats whose answers are looked for. */
#define BEATS 64
/* A host node that grants more is not believed. */
#define LEASE_MAX_MS 3600000U

enum join_state {
    JOIN_LOOKING_UP,
    JOIN_CONNECTING,
    JOIN_ASKING, /* HELLO is sent */
    JOIN_IN,
    JOIN_PAUSING, /* until the next try */
    JOIN_AWAY,    /* the host node is lost, and our workers are being killed */
    JOIN_OVER,    /* END is or will be told */
};

struct rdzv_join {
    struct rdzv_setup setup;
    bool (*ours)(void *arg);
    void *ours_arg;
    enum join_state state;
    uv_loop_t *loop;
    uv_timer_t timer; /* of the state */
    uv_timer_t beat;
    struct agent_link_buffer buffer;
    struct lookup *lookup;
    struct addrinfo *list;
    const struct addrinfo *at; /* the address that is being tried */
    struct agent_link *link;
    struct agent_link *last_link;    /* has END, and is being closed */
    char where[AGENT_HOST_MAX + 16]; /* "h0:29500" */
    char host[AGENT_HOST_MAX];       /* the host node's name, once known */
    char why[256];                   /* the last try failed */
    unsigned tries;
    uint64_t began_ms;
    uint64_t deadline_ms;
    uint64_t say_ms;
    uint64_t pause_ms;
    bool in_round;  /* START has come at least once: the job has run */
    bool rejoining; /* after a loss */
    bool stop_asked;
    uint64_t incarnation;
    uint64_t seq;
    uint64_t sent_ns[BEATS];
    uint64_t hello_ns;
    uint64_t lease_ns; /* a duration */
    uint64_t until_ns; /* the lease ends */
    struct agent_msg end;
    char end_text[AGENT_TEXT_MAX];
    bool stopping;
};

static void address_next(struct rdzv_join *join, const char *why);
static void try_begin(struct rdzv_join *join);
static void try_failed(struct rdzv_join *join, const char *why);

/* --- the end ------------------------------------------------------------ */

static void end_tell(uv_timer_t *timer)
{
    struct rdzv_join *join = timer->data;

    join->setup.events->message(&join->end, join->setup.arg);
}

static void link_drop(struct rdzv_join *join)
{
    if (join->link != NULL) {
        agent_link_stop(join->link);
        join->link = NULL;
    }
}

static void try_drop(struct rdzv_join *join)
{
    (void)uv_timer_stop(&join->timer);
    (void)uv_timer_stop(&join->beat);
    lookup_stop(join->lookup);
    join->lookup = NULL;
    link_drop(join);
    if (join->list != NULL) {
        freeaddrinfo(join->list);
        join->list = NULL;
    }
}

/* The job is over for this node, and no coordinator says so. */
static void end_by_ourselves(struct rdzv_join *join, uint32_t code,
                             const char *text)
{
    try_drop(join);
    join->state = JOIN_OVER;
    if (text != join->end_text) {
        (void)snprintf(join->end_text, sizeof(join->end_text), "%s", text);
    }
    join->end = agent_msg_init(AGENT_END);
    join->end.code = code;
    join->end.text = join->end_text;
    (void)uv_timer_start(&join->timer, end_tell, 0, 0);
}

/* The time to join, or to join again, is over. */
static void give_up(struct rdzv_join *join)
{
    char text[AGENT_TEXT_MAX];

    if (join->rejoining) {
        end_by_ourselves(join, EXIT_FLAUNCH, join->end_text);
        return;
    }
    (void)snprintf(text, sizeof(text),
                   "could not join the host node at %s in %.0f s: %s (%u "
                   "tries)",
                   join->where, (double)(clock_ms() - join->began_ms) / 1000,
                   join->why, join->tries);
    end_by_ourselves(join, EXIT_TIME_LIMIT, text);
}

/* --- the host node is lost ---------------------------------------------- */

static void host_lost(struct rdzv_join *join, const char *why)
{
    /* It may hear us, though we do not hear it. */
    if (join->link != NULL) {
        agent_link_reset(join->link);
        join->link = NULL;
    }
    try_drop(join);
    if (!join->in_round) {
        try_failed(join, why);
        return;
    }
    join->state = JOIN_AWAY;
    (void)snprintf(join->end_text, sizeof(join->end_text),
                   "lost the host node %s (%s): %s", join->host, join->where,
                   why);
    join->setup.events->lost(join->end_text, join->setup.arg);
}

/* Our workers are gone: perhaps it was only the connection. */
static void rejoin(struct rdzv_join *join)
{
    join->rejoining = true;
    join->pause_ms = PAUSE_FIRST_MS;
    join->tries = 0;
    join->deadline_ms = clock_deadline(RDZV_REJOIN_MS);
    join->say_ms = CLOCK_NEVER;
    try_begin(join);
}

/* --- alive -------------------------------------------------------------- */

static void lease_extend(struct rdzv_join *join, uint64_t sent_ns)
{
    uint64_t until_ns = sent_ns + join->lease_ns;

    if (until_ns > join->until_ns) {
        join->until_ns = until_ns;
        join->setup.events->lease(until_ns, join->setup.arg);
    }
}

/* Nothing that we say now may count: others may have our ranks. */
void rdzv_join_lease_over(struct rdzv_join *join)
{
    char why[96];

    if (join->state == JOIN_IN) {
        (void)snprintf(why, sizeof(why), "it has not answered for %g s",
                       (double)join->lease_ns / 1e9);
        host_lost(join, why);
    }
}

static void beat(uv_timer_t *timer)
{
    struct rdzv_join *join = timer->data;
    struct agent_msg msg = { .type = AGENT_HEARTBEAT,
                             .incarnation = join->incarnation };
    uint64_t now_ns = clock_boot_ns();

    if (now_ns >= join->until_ns) {
        rdzv_join_lease_over(join);
        return;
    }
    msg.seq = ++join->seq;
    join->sent_ns[msg.seq % BEATS] = now_ns;
    agent_link_send(join->link, &msg);
}

static void take_ack(struct rdzv_join *join, uint64_t seq)
{
    if (seq <= join->seq && join->seq - seq < BEATS && seq > 0) {
        lease_extend(join, join->sent_ns[seq % BEATS]);
    }
}

/* --- what the host node says -------------------------------------------- */

static void take_welcome(struct rdzv_join *join, const struct agent_msg *msg)
{
    if (join->state != JOIN_ASKING) {
        return;
    }
    join->state = JOIN_IN;
    (void)uv_timer_stop(&join->timer);
    (void)snprintf(join->host, sizeof(join->host), "%s", msg->host);
    join->rejoining = false;
    join->seq = 0;
    join->until_ns = 0;
    join->lease_ns =
        (msg->lease_ms < LEASE_MAX_MS ? msg->lease_ms : LEASE_MAX_MS) * 1000000;
    lease_extend(join, join->hello_ns);
    log_line(LOG_DEBUG, "joined the host node %s at %s", join->host,
             join->where);
    (void)uv_timer_start(&join->beat, beat, 0, RDZV_BEAT_MS);
}

static void take_refused(struct rdzv_join *join, const struct agent_msg *msg)
{
    char text[AGENT_TEXT_MAX + AGENT_HOST_MAX];

    if (join->state == JOIN_IN) {
        host_lost(join, msg->text);
        return;
    }
    (void)snprintf(text, sizeof(text), "refused by the host node at %s: %s",
                   join->where, msg->text);
    end_by_ourselves(join, msg->code, text);
}

static void take_end(struct rdzv_join *join, const struct agent_msg *msg)
{
    const struct agent_msg bye = { .type = AGENT_BYE,
                                   .incarnation = join->incarnation };
    struct agent_link *link = join->link;

    join->state = JOIN_OVER;
    join->link = NULL;
    join->last_link = link;
    agent_link_send(link, &bye);
    join->setup.events->message(msg, join->setup.arg);
    agent_link_finish(link);
    (void)uv_timer_stop(&join->timer);
    (void)uv_timer_stop(&join->beat);
}

static void link_message(struct agent_link *link, const struct agent_msg *msg,
                         void *arg)
{
    struct rdzv_join *join = arg;

    if (link != join->link || msg->incarnation != join->incarnation) {
        return; /* of a connection that is given up */
    }
    switch (msg->type) {
    case AGENT_WELCOME:
        take_welcome(join, msg);
        break;
    case AGENT_REFUSED:
        take_refused(join, msg);
        break;
    case AGENT_ACK:
        take_ack(join, msg->seq);
        break;
    case AGENT_END:
        take_end(join, msg);
        break;
    case AGENT_START:
        join->in_round = true;
        join->setup.events->message(msg, join->setup.arg);
        break;
    case AGENT_STATUS:
    case AGENT_STOP:
    case AGENT_FIRST_DONE:
        join->setup.events->message(msg, join->setup.arg);
        break;
    default:
        if (join->state == JOIN_IN) {
            host_lost(join, "it said what no host node says");
        } else {
            address_next(join, "it said what no host node says");
        }
        break;
    }
}

/* --- one try ------------------------------------------------------------ */

static void no_answer(uv_timer_t *timer);

/* Wait for an answer, but not beyond the time to join. */
static void answer_await(struct rdzv_join *join, uint64_t limit_ms)
{
    uint64_t now_ms = clock_ms();
    uint64_t left_ms =
        join->deadline_ms > now_ms ? join->deadline_ms - now_ms : 1;

    (void)uv_timer_start(&join->timer, no_answer,
                         limit_ms < left_ms ? limit_ms : left_ms, 0);
}

static void link_ready(struct agent_link *link, void *arg)
{
    struct rdzv_join *join = arg;
    struct agent_msg hello;

    if (link != join->link) {
        return;
    }
    hello = rdzv_hello(join->setup.config, join->incarnation);
    join->hello_ns = clock_boot_ns();
    join->state = JOIN_ASKING;
    answer_await(join, RDZV_HELLO_MS);
    agent_link_send(link, &hello);
}

static void link_ended(struct agent_link *link, const char *why, void *arg)
{
    struct rdzv_join *join = arg;
    char text[AGENT_TEXT_MAX];

    if (link != join->link) {
        agent_link_stop(link);
    } else if (join->state == JOIN_IN) {
        host_lost(join, why);
    } else if (link->ready || link->peer_version == 0 ||
               link->peer_version == AGENT_VERSION) {
        address_next(join, why);
    } else {
        (void)snprintf(text, sizeof(text),
                       "cannot join the host node at %s: %s", join->where, why);
        end_by_ourselves(join, EXIT_FLAUNCH, text); /* time does not help */
    }
}

static void link_closed(struct agent_link *link, void *arg)
{
    struct rdzv_join *join = arg;

    if (join->last_link == link) {
        join->last_link = NULL;
    }
    free(link);
}

static const struct agent_link_events link_events = {
    .ready = link_ready,
    .message = link_message,
    .ended = link_ended,
    .closed = link_closed,
};

static void no_answer(uv_timer_t *timer)
{
    struct rdzv_join *join = timer->data;

    if (clock_ms() >= join->deadline_ms && join->why[0] != '\0') {
        try_failed(join, join->why); /* what earlier tries saw says more */
        return;
    }
    address_next(join, join->state == JOIN_ASKING ? "it does not answer"
                                                  : "Connection timed out");
}

/* Connect to join->at. */
static void address_try(struct rdzv_join *join)
{
    struct agent_link *link = calloc(1, sizeof(*link));

    join->state = JOIN_CONNECTING;
    if (link == NULL ||
        getrandom(&join->incarnation, sizeof(join->incarnation), 0) < 0) {
        free(link);
        try_failed(join, "no memory");
        return;
    }
    join->link = link;
    answer_await(join, RDZV_CONNECT_MS);
    if (agent_link_connect(link, join->loop, join->at->ai_addr, &join->buffer,
                           &link_events, join) < 0) {
        join->link = NULL; /* it closes by itself */
        try_failed(join, "cannot make a connection");
        return;
    }
}

/* This one does not do: is there another? */
static void address_next(struct rdzv_join *join, const char *why)
{
    char copy[sizeof(join->why)];

    (void)snprintf(copy, sizeof(copy), "%s", why);
    link_drop(join);
    join->at = join->at->ai_next;
    if (join->at != NULL) {
        address_try(join);
        return;
    }
    try_failed(join, copy);
}

static void looked_up(struct addrinfo *list, const struct err *err, void *arg)
{
    struct rdzv_join *join = arg;
    const struct addrinfo *at;

    join->lookup = NULL;
    if (list == NULL) {
        try_failed(join, err->text);
        return;
    }
    join->list = list;
    join->at = list;
    for (at = list; join->ours != NULL && at != NULL; at = at->ai_next) {
        if (net_is_ours(at->ai_addr)) {
            bool (*ours)(void *arg) = join->ours;

            join->ours = NULL; /* once: somebody else hosts on this machine */
            if (ours(join->ours_arg)) {
                return;
            }
        }
    }
    address_try(join);
}

static void say_progress(struct rdzv_join *join, uint64_t now_ms)
{
    if (now_ms < join->say_ms) {
        return;
    }
    join->say_ms = now_ms + SAY_MS;
    log_line(LOG_INFO,
             "cannot join the host node at %s yet: %s (%u tries, %.0f s left)",
             join->where, join->why, join->tries,
             (double)(join->deadline_ms - now_ms) / 1000);
}

/* A look-up that takes long: nothing but the time tells. */
static void still_looking_up(uv_timer_t *timer)
{
    struct rdzv_join *join = timer->data;
    uint64_t now_ms = clock_ms();

    (void)snprintf(join->why, sizeof(join->why), "looking up %.200s takes long",
                   join->setup.config->nodes.host);
    if (now_ms >= join->deadline_ms) {
        give_up(join);
        return;
    }
    say_progress(join, now_ms);
    (void)uv_timer_start(timer, still_looking_up, RDZV_PAUSE_MAX_MS, 0);
}

static void try_begin(struct rdzv_join *join)
{
    const struct nodes *nodes = &join->setup.config->nodes;
    struct err err = { 0 };

    join->state = JOIN_LOOKING_UP;
    join->tries++;
    (void)uv_timer_start(&join->timer, still_looking_up, RDZV_PAUSE_MAX_MS, 0);
    if (lookup_start(join->loop, nodes->host, nodes->port, looked_up, join,
                     &join->lookup, &err) < 0) {
        try_failed(join, err.text);
    }
}

static void pause_over(uv_timer_t *timer)
{
    try_begin(timer->data);
}

/* Full jitter, so that many nodes do not come at once. */
static uint64_t pause_take(struct rdzv_join *join)
{
    uint64_t pause_ms = join->pause_ms;
    uint32_t random = 0;

    (void)getrandom(&random, sizeof(random), GRND_NONBLOCK);
    join->pause_ms =
        pause_ms * 2 < RDZV_PAUSE_MAX_MS ? pause_ms * 2 : RDZV_PAUSE_MAX_MS;
    return pause_ms / 4 + random % (pause_ms * 3 / 4);
}

static void try_failed(struct rdzv_join *join, const char *why)
{
    uint64_t now_ms = clock_ms();
    uint64_t pause_ms = pause_take(join);

    if (why != join->why) {
        (void)snprintf(join->why, sizeof(join->why), "%s", why);
    }
    try_drop(join);
    if (now_ms >= join->deadline_ms ||
        (join->rejoining && strcmp(join->why, strerror(ECONNREFUSED)) == 0)) {
        give_up(join);
        return;
    }
    say_progress(join, now_ms);
    if (pause_ms > join->deadline_ms - now_ms) {
        pause_ms = join->deadline_ms - now_ms;
    }
    join->state = JOIN_PAUSING;
    (void)uv_timer_start(&join->timer, pause_over, pause_ms, 0);
}

/* --- this node ---------------------------------------------------------- */

int rdzv_join_create(const struct rdzv_setup *setup, bool (*ours)(void *arg),
                     void *ours_arg, struct rdzv_join **join_out)
{
    const struct nodes *nodes = &setup->config->nodes;
    bool v6 = strchr(nodes->host, ':') != NULL;
    struct rdzv_join *join = calloc(1, sizeof(*join));

    if (join == NULL) {
        return -ENOMEM;
    }
    join->setup = *setup;
    join->ours = ours;
    join->ours_arg = ours_arg;
    join->pause_ms = PAUSE_FIRST_MS;
    (void)snprintf(join->where, sizeof(join->where), v6 ? "[%s]:%u" : "%s:%u",
                   nodes->host, nodes->port);
    *join_out = join;
    return 0;
}

void rdzv_join_open(struct rdzv_join *join, uv_loop_t *loop)
{
    join->loop = loop;
    (void)uv_timer_init(loop, &join->timer); /* cannot fail */
    (void)uv_timer_init(loop, &join->beat);
    join->timer.data = join;
    join->beat.data = join;
    join->began_ms = clock_ms();
    join->deadline_ms = clock_deadline(join->setup.config->nodes.join_ms);
    join->say_ms = join->began_ms + SAY_FIRST_MS;
    try_begin(join);
}

/* Nobody hears it: what does it mean for ourselves? */
static void send_to_nobody(struct rdzv_join *join, const struct agent_msg *msg)
{
    switch (msg->type) {
    case AGENT_STOP_JOB:
    case AGENT_LEAVE:
        join->stop_asked = true;
        if (join->state != JOIN_AWAY) {
            end_by_ourselves(join, msg->code, msg->text);
        }
        break;
    case AGENT_ENDED:
        if (join->state == JOIN_AWAY && join->stop_asked) {
            end_by_ourselves(join, msg->code != 0 ? msg->code : EXIT_FLAUNCH,
                             join->end_text);
        } else if (join->state == JOIN_AWAY) {
            rejoin(join);
        }
        break;
    default:
        break;
    }
}

void rdzv_join_send(struct rdzv_join *join, const struct agent_msg *msg)
{
    struct agent_msg copy = *msg;

    if (join->state == JOIN_OVER || join->stopping) {
        return;
    }
    if (join->state != JOIN_IN) {
        send_to_nobody(join, msg);
        return;
    }
    copy.incarnation = join->incarnation;
    agent_link_send(join->link, &copy);
}

void rdzv_join_stop(struct rdzv_join *join)
{
    if (join->stopping) {
        return;
    }
    join->stopping = true;
    if (join->loop != NULL) {
        try_drop(join);
        if (join->last_link != NULL) {
            agent_link_stop(join->last_link);
        }
        uv_close((uv_handle_t *)&join->timer, NULL);
        uv_close((uv_handle_t *)&join->beat, NULL);
    }
}

void rdzv_join_destroy(struct rdzv_join *join)
{
    free(join);
}
