#include "launcher/agent_link.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of what a stranger said, for the sentence about him. */
#define STRANGER_BYTES 24

static void link_flush(struct agent_link *link);

static void link_closed(uv_handle_t *handle)
{
    struct agent_link *link = handle->data;

    buf_destroy(&link->in);
    buf_destroy(&link->out);
    buf_destroy(&link->sending);
    link->events->closed(link, link->arg);
}

void agent_link_stop(struct agent_link *link)
{
    if (link->stopping) {
        return;
    }
    link->stopping = true;
    uv_close((uv_handle_t *)&link->tcp, link_closed);
}

void agent_link_reset(struct agent_link *link)
{
    if (!link->stopping && uv_tcp_close_reset(&link->tcp, link_closed) == 0) {
        link->stopping = true;
    }
    agent_link_stop(link);
}

static void link_ended(struct agent_link *link, const char *why)
{
    if (link->ended || link->stopping) {
        return;
    }
    link->ended = true;
    if (link->finishing) {
        agent_link_stop(link); /* nobody is interested */
        return;
    }
    (void)uv_read_stop((uv_stream_t *)&link->tcp);
    link->events->ended(link, why, link->arg);
}

/* "the connection to it failed: Connection refused" */
static void link_failed(struct agent_link *link, const char *what, int rc)
{
    char why[128];

    (void)snprintf(why, sizeof(why), "%s: %s", what, strerror(-rc));
    link_ended(link, why);
}

/*
 * The connection is no more. Whether a process that has gone is told as an end
 * or as a reset is chance: the latter where it had left something unread.
 */
static void link_broke(struct agent_link *link, int rc)
{
    if (rc == UV_EOF || rc == UV_ECONNRESET || rc == UV_EPIPE) {
        link_ended(link, "its connection was closed");
    } else {
        link_failed(link, "its connection broke", rc);
    }
}

static void link_written(uv_write_t *write, int status)
{
    struct agent_link *link = write->data;

    link->writing = false;
    link->sending.len = 0;
    if (link->stopping) {
        return;
    }
    if (status < 0) {
        link_broke(link, status);
        return;
    }
    link_flush(link);
}

/* Send what did not go at once. */
static void link_write_rest(struct agent_link *link)
{
    struct buf spare = link->sending;
    uv_buf_t piece;
    int rc;

    link->sending = link->out;
    link->out = spare;
    piece =
        uv_buf_init((char *)link->sending.data, (unsigned)link->sending.len);
    link->write.data = link;
    rc = uv_write(&link->write, (uv_stream_t *)&link->tcp, &piece, 1,
                  link_written);
    if (rc < 0) {
        link_broke(link, rc);
        return;
    }
    link->writing = true;
}

static void link_flush(struct agent_link *link)
{
    if (link->writing || link->stopping || link->ended) {
        return;
    }
    if (link->out.len > 0) {
        uv_buf_t piece =
            uv_buf_init((char *)link->out.data, (unsigned)link->out.len);
        int n = uv_try_write((uv_stream_t *)&link->tcp, &piece, 1);

        if (n < 0 && n != UV_EAGAIN) {
            link_broke(link, n);
            return;
        }
        buf_consume(&link->out, n > 0 ? (size_t)n : 0);
    }
    if (link->out.len > 0) {
        link_write_rest(link);
    } else if (link->finishing) {
        agent_link_stop(link);
    }
}

void agent_link_send(struct agent_link *link, const struct agent_msg *msg)
{
    if (link->stopping || link->ended || link->finishing) {
        return;
    }
    if (link->out.len > AGENT_LINK_UNSENT_MAX) {
        link_ended(link, "it does not read what it is sent");
        return;
    }
    if (agent_msg_encode(&link->out, msg) < 0) {
        link_ended(link, "there is no memory for what it is to be sent");
        return;
    }
    if (link->ready) {
        link_flush(link);
    }
}

void agent_link_finish(struct agent_link *link)
{
    link->finishing = true;
    if (link->ended) {
        agent_link_stop(link);
    } else {
        link_flush(link);
    }
}

/* Somebody who is no flaunch: say what he said. */
static void link_stranger(struct agent_link *link)
{
    char said[STRANGER_BYTES + 1];
    char why[160];
    size_t i;

    for (i = 0; i < STRANGER_BYTES && i < link->in.len; i++) {
        said[i] = isprint(link->in.data[i]) ? (char)link->in.data[i] : '.';
    }
    said[i] = '\0';
    (void)snprintf(why, sizeof(why),
                   "something else than flaunch answers "
                   "there: it said \"%s\"",
                   said);
    link_ended(link, why);
}

/* The peer's preface: true when it is complete. */
static bool link_take_preface(struct agent_link *link)
{
    char why[160];
    int rc =
        agent_preface_decode(link->in.data, link->in.len, &link->peer_version);

    if (rc < 0) {
        link_stranger(link);
        return false;
    }
    if (rc == 0) {
        return false;
    }
    if (link->peer_version != AGENT_VERSION) {
        (void)snprintf(why, sizeof(why),
                       "its flaunch speaks version %u of our protocol, and "
                       "this one version %u: use one release on all nodes",
                       link->peer_version, AGENT_VERSION);
        link_flush(link); /* our preface tells it the same */
        link_ended(link, why);
        return false;
    }
    buf_consume(&link->in, AGENT_PREFACE_LEN);
    link->ready = true;
    link->events->ready(link, link->arg);
    link_flush(link);
    return true;
}

static void link_take_frames(struct agent_link *link)
{
    struct reader reader = { .data = link->in.data, .len = link->in.len };
    struct agent_msg msg;
    int rc = 0;

    while (!link->stopping && !link->ended &&
           (rc = agent_msg_decode(&reader, &msg)) > 0) {
        link->events->message(link, &msg, link->arg);
    }
    if (rc < 0) {
        link_ended(link, "it said what no flaunch says");
        return;
    }
    if (reader.pos > 0) {
        buf_consume(&link->in, reader.pos);
    }
}

static void link_take(struct agent_link *link, const uint8_t *data, size_t len)
{
    if (buf_append(&link->in, data, len) < 0) {
        link_ended(link, "there is no memory for what it says");
        return;
    }
    if (link->ready || link_take_preface(link)) {
        link_take_frames(link);
    }
}

static void link_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct agent_link *link = handle->data;

    (void)suggested;
    *buf = uv_buf_init(link->buffer->data, sizeof(link->buffer->data));
}

static void link_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct agent_link *link = stream->data;

    if (link->stopping || n == 0) {
        return;
    }
    if (!link->ready && (n == UV_EOF || n == UV_ECONNRESET)) {
        link_ended(link, "it closed the connection without a word, as "
                         "something else than flaunch would");
        return;
    }
    if (n < 0) {
        link_broke(link, (int)n);
        return;
    }
    if (!link->finishing) {
        link_take(link, (const uint8_t *)buf->base, (size_t)n);
    }
}

static int link_init(struct agent_link *link, uv_loop_t *loop,
                     struct agent_link_buffer *buffer,
                     const struct agent_link_events *events, void *arg)
{
    *link =
        (struct agent_link){ .buffer = buffer, .events = events, .arg = arg };
    /* Without an address family this makes no system call and cannot fail. */
    (void)uv_tcp_init(loop, &link->tcp);
    link->tcp.data = link;
    return agent_preface_encode(&link->out);
}

/* The socket is connected: speak. */
static int link_begin(struct agent_link *link)
{
    (void)uv_tcp_nodelay(&link->tcp, 1);
    return uv_read_start((uv_stream_t *)&link->tcp, link_alloc, link_read);
}

int agent_link_adopt(struct agent_link *link, uv_loop_t *loop, int fd,
                     const uint8_t *head, size_t len,
                     struct agent_link_buffer *buffer,
                     const struct agent_link_events *events, void *arg)
{
    int rc = link_init(link, loop, buffer, events, arg);

    if (rc == 0) {
        rc = uv_tcp_open(&link->tcp, fd);
    }
    if (rc < 0) {
        (void)close(fd);
    } else {
        rc = link_begin(link);
    }
    if (rc < 0) {
        agent_link_stop(link);
        return rc;
    }
    link_take(link, head, len);
    return 0;
}

static void link_connected(uv_connect_t *connect, int status)
{
    struct agent_link *link = connect->data;
    int rc = status;

    if (link->stopping) {
        return;
    }
    if (rc < 0) {
        link_ended(link, strerror(-rc));
        return;
    }
    rc = link_begin(link);
    if (rc < 0) {
        link_failed(link, "cannot read from it", rc);
        return;
    }
    link_flush(link);
}

int agent_link_connect(struct agent_link *link, uv_loop_t *loop,
                       const struct sockaddr *address,
                       struct agent_link_buffer *buffer,
                       const struct agent_link_events *events, void *arg)
{
    int rc = link_init(link, loop, buffer, events, arg);

    link->connect.data = link;
    if (rc == 0) {
        rc =
            uv_tcp_connect(&link->connect, &link->tcp, address, link_connected);
    }
    if (rc < 0) {
        agent_link_stop(link);
    }
    return rc;
}
