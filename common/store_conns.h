/*
 * All client connections of a store, on libuv, and what they share: one handle
 * for their descriptors, one timer, one buffer to read into.
 *
 * Life: store_conns_start, store_conns_stop, on_closed.
 */
#ifndef FLAUNCH_COMMON_STORE_CONNS_H
#define FLAUNCH_COMMON_STORE_CONNS_H

#include "common/log_limit.h"
#include "common/poll_set.h"
#include "common/port_demux.h"
#include "common/store_conn.h"

#include <uv.h>

#define STORE_READ_MAX ((size_t)64 * 1024)

LIST_HEAD(store_conn_list, store_conn);
TAILQ_HEAD(store_silent_list, store_conn);

/* What the silence of a client would mean. */
enum store_silence {
    STORE_SILENCE_FINE,
    STORE_SILENCE_HELLO, /* it never says the rest of its hello */
    STORE_SILENCE_GRACE, /* see store_parser_undecided */
    STORE_N_SILENCES,
};

struct store_conns {
    struct store *store;            /* the owner's */
    const struct port_demux *demux; /* who takes agents, or NULL */
    void (*complain)(const char *text, void *arg); /* or NULL */
    void *complain_arg;
    struct log_limit complaints;
    struct poll_set polls; /* listening sockets are here as well */
    struct store_conn_list all;
    struct store_conn_list dead; /* to be freed from the loop */
    size_t n;
    struct store_silent_list silent[STORE_N_SILENCES]; /* oldest first */
    struct buf replies; /* of the read under way */
    uv_poll_t poll;
    uv_timer_t silence_timer;
    uv_timer_t reaper;
    int open_handles;
    bool stopping;
    void (*on_closed)(struct store_conns *conns, void *arg);
    void *arg;
    uint8_t read_buffer[STORE_READ_MAX];
};

/*
 * Begin, with the members down to complain_arg set and the rest 0.
 *
 * Returns 0 or a negative errno; on_closed runs in either case, once, from the
 * loop: after store_conns_stop, or after the failure.
 */
int store_conns_start(struct store_conns *conns, uv_loop_t *loop,
                      void (*on_closed)(struct store_conns *conns, void *arg),
                      void *arg);

/* Cut all connections; may be called twice. */
void store_conns_stop(struct store_conns *conns);

/* Serve a client at fd, which is ours from here on: 0 or -ENOMEM. */
int store_conns_add(struct store_conns *conns, int fd);

/* For store_conn: it has stopped. */
void store_conns_bury(struct store_conns *conns, struct store_conn *conn);

/* For store_conn: what silence would mean from now on. */
void store_conns_listen(struct store_conns *conns, struct store_conn *conn,
                        enum store_silence silence);

/* Say, if it is not said too often, what is wrong with the client at fd. */
void store_conns_complain(struct store_conns *conns, int fd, const char *what);

/* "10.0.0.1:41234", "[fd00::1]:41234". */
void store_peer_text(int fd, char *text_out, size_t size);

#endif
