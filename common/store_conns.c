#include "common/store_conns.h"

#include "common/clock.h"
#include "common/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A first byte must be followed by the rest of a hello within this time. A
 * connection that sends nothing at all is normal: old clients open one. */
#define HELLO_TIMEOUT_MS 10000

static const uint64_t patience_ms[STORE_N_SILENCES] = {
    [STORE_SILENCE_FINE] = CLOCK_NEVER,
    [STORE_SILENCE_HELLO] = HELLO_TIMEOUT_MS,
    [STORE_SILENCE_GRACE] = STORE_GRACE_MS,
};

/* --- what is said -------------------------------------------------------- */

void store_peer_text(int fd, char *text_out, size_t size)
{
    struct sockaddr_storage name = { .ss_family = AF_UNSPEC };
    socklen_t len = sizeof(name);
    char host[64];

    (void)getpeername(fd, (struct sockaddr *)&name, &len);
    net_address_text((struct sockaddr *)&name, host, sizeof(host));
    (void)snprintf(text_out, size,
                   strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u", host,
                   net_port_of((struct sockaddr *)&name));
}

void store_conns_complain(struct store_conns *conns, int fd, const char *what)
{
    char line[ERR_TEXT_MAX + 256];
    char peer[80];
    char more[64] = "";
    size_t n_left_out;

    if (conns->complain == NULL ||
        !log_limit_take(&conns->complaints, clock_ms(), &n_left_out)) {
        return;
    }
    store_peer_text(fd, peer, sizeof(peer));
    if (n_left_out > 0) {
        (void)snprintf(more, sizeof(more), " (and %zu others before)",
                       n_left_out);
    }
    (void)snprintf(line, sizeof(line),
                   "store: the client at %s is cut off: %s%s", peer, what,
                   more);
    conns->complain(line, conns->complain_arg);
}

/* --- the end ------------------------------------------------------------- */

static void handle_closed(uv_handle_t *handle)
{
    struct store_conns *conns = handle->data;

    if (--conns->open_handles > 0) {
        return;
    }
    poll_set_close(&conns->polls);
    buf_destroy(&conns->replies);
    conns->on_closed(conns, conns->arg);
}

/* Free what has stopped: nothing on the stack uses it here. */
static void reap(uv_timer_t *timer)
{
    struct store_conns *conns = timer->data;
    struct store_conn *conn;

    while ((conn = LIST_FIRST(&conns->dead)) != NULL) {
        LIST_REMOVE(conn, all);
        store_session_destroy(&conn->session);
        store_release(conns->store, conn->charged);
        buf_destroy(&conn->unsent);
        free(conn);
    }
    if (conns->stopping) {
        uv_close((uv_handle_t *)&conns->reaper, handle_closed);
    }
}

void store_conns_bury(struct store_conns *conns, struct store_conn *conn)
{
    store_conns_listen(conns, conn, STORE_SILENCE_FINE);
    LIST_REMOVE(conn, all);
    LIST_INSERT_HEAD(&conns->dead, conn, all);
    conns->n--;
    (void)uv_timer_start(&conns->reaper, reap, 0, 0);
}

void store_conns_stop(struct store_conns *conns)
{
    struct store_conn *conn;

    if (conns->stopping) {
        return;
    }
    conns->stopping = true;
    while ((conn = LIST_FIRST(&conns->all)) != NULL) {
        store_conn_stop(conn); /* takes it off the list */
    }
    uv_close((uv_handle_t *)&conns->poll, handle_closed);
    uv_close((uv_handle_t *)&conns->silence_timer, handle_closed);
    (void)uv_timer_start(&conns->reaper, reap, 0, 0);
}

/* --- silence ------------------------------------------------------------- */

static void silence_broken(uv_timer_t *timer);

/* Wake up for the first whose time is over. */
static void silence_arm(struct store_conns *conns)
{
    uint64_t first_ms = CLOCK_NEVER;
    uint64_t now_ms = clock_ms();
    int i;

    for (i = STORE_SILENCE_HELLO; i < STORE_N_SILENCES; i++) {
        const struct store_conn *conn = TAILQ_FIRST(&conns->silent[i]);

        if (conn != NULL) {
            first_ms = clock_earlier(first_ms, conn->silence_ms);
        }
    }
    if (first_ms != CLOCK_NEVER && !conns->stopping) {
        (void)uv_timer_start(&conns->silence_timer, silence_broken,
                             first_ms > now_ms ? first_ms - now_ms : 0, 0);
    }
}

static void silence_broken(uv_timer_t *timer)
{
    struct store_conns *conns = timer->data;
    uint64_t now_ms = clock_ms();
    int i;

    for (i = STORE_SILENCE_HELLO; i < STORE_N_SILENCES; i++) {
        struct store_conn *conn;

        while ((conn = TAILQ_FIRST(&conns->silent[i])) != NULL &&
               conn->silence_ms <= now_ms) {
            if (i == STORE_SILENCE_HELLO) {
                store_conn_stop(conn);
            } else {
                store_conns_listen(conns, conn, STORE_SILENCE_FINE);
                store_conn_settle(conn);
            }
        }
    }
    silence_arm(conns);
}

void store_conns_listen(struct store_conns *conns, struct store_conn *conn,
                        enum store_silence silence)
{
    if (conn->silence == STORE_SILENCE_FINE && silence == STORE_SILENCE_FINE) {
        return;
    }
    if (conn->silence == STORE_SILENCE_HELLO &&
        silence == STORE_SILENCE_HELLO) {
        return; /* a byte now and then gives no more time */
    }
    if (conn->silence != STORE_SILENCE_FINE) {
        TAILQ_REMOVE(&conns->silent[conn->silence], conn, silent);
    }
    conn->silence = (uint8_t)silence;
    if (silence != STORE_SILENCE_FINE) {
        conn->silence_ms = clock_deadline(patience_ms[silence]);
        TAILQ_INSERT_TAIL(&conns->silent[silence], conn, silent);
        silence_arm(conns);
    }
}

/* --- the beginning ------------------------------------------------------- */

static void some_ready(uv_poll_t *poll, int status, int events)
{
    struct store_conns *conns = poll->data;

    (void)status; /* of an epoll there is none */
    (void)events;
    poll_set_dispatch(&conns->polls);
}

int store_conns_add(struct store_conns *conns, int fd)
{
    struct store_conn *conn = malloc(sizeof(*conn));

    if (conn == NULL) {
        (void)close(fd);
        return -ENOMEM;
    }
    conn->silence = STORE_SILENCE_FINE;
    LIST_INSERT_HEAD(&conns->all, conn, all);
    conns->n++;
    store_conn_start(conn, conns, fd);
    return 0;
}

static void timer_init(struct store_conns *conns, uv_loop_t *loop,
                       uv_timer_t *timer)
{
    (void)uv_timer_init(loop, timer); /* cannot fail */
    timer->data = conns;
    conns->open_handles++;
}

int store_conns_start(struct store_conns *conns, uv_loop_t *loop,
                      void (*on_closed)(struct store_conns *conns, void *arg),
                      void *arg)
{
    int rc;
    int i;

    conns->on_closed = on_closed;
    conns->arg = arg;
    for (i = 0; i < STORE_N_SILENCES; i++) {
        TAILQ_INIT(&conns->silent[i]);
    }
    timer_init(conns, loop, &conns->silence_timer);
    timer_init(conns, loop, &conns->reaper);
    rc = poll_set_open(&conns->polls);
    if (rc == 0) {
        rc = uv_poll_init(loop, &conns->poll, conns->polls.fd);
    }
    if (rc < 0) {
        conns->stopping = true;
        uv_close((uv_handle_t *)&conns->silence_timer, handle_closed);
        uv_close((uv_handle_t *)&conns->reaper, handle_closed);
        return rc;
    }
    conns->poll.data = conns;
    conns->open_handles++;
    rc = uv_poll_start(&conns->poll, UV_READABLE, some_ready);
    if (rc < 0) {
        store_conns_stop(conns);
    }
    return rc;
}
