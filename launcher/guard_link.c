#include "launcher/guard_link.h"

#include <errno.h>

static void link_closed(uv_handle_t *handle)
{
    struct guard_link *link = handle->data;

    guard_outbox_destroy(&link->out);
    link->events->closed(link->arg);
}

void guard_link_stop(struct guard_link *link)
{
    if (link->stopping || link->poll.data == NULL) {
        return;
    }
    link->stopping = true;
    uv_close((uv_handle_t *)&link->poll, link_closed);
}

static void link_ended(struct guard_link *link)
{
    if (link->ended) {
        return;
    }
    link->ended = true;
    (void)uv_poll_stop(&link->poll);
    link->events->ended(link->arg);
}

static void link_ready(uv_poll_t *poll, int status, int events);

/* Watch for room only while something waits for it. */
static int link_watch(struct guard_link *link)
{
    int events = UV_READABLE | (link->out.bytes.len > 0 ? UV_WRITABLE : 0);

    return uv_poll_start(&link->poll, events, link_ready);
}

/* The descriptors are those of the only message that speaks of them. */
static void link_deliver(struct guard_link *link, const struct guard_msg *msg)
{
    struct guard_msg copy = *msg;

    if ((msg->type == GUARD_SPAWNED || msg->type == GUARD_LEFT) &&
        link->packet.pid != 0) {
        copy.pid = link->packet.pid;
    }
    if (msg->type == GUARD_SPAWNED) {
        copy.count = (uint32_t)link->packet.n_fds;
        link->packet.n_fds = 0;
    }
    link->events->message(&copy, link->packet.fds, link->arg);
}

static void link_receive(struct guard_link *link)
{
    int rc;

    while (!link->ended && !link->stopping &&
           (rc = guard_pair_receive(link->fd, &link->packet)) != 0) {
        struct reader reader = { .data = link->packet.data,
                                 .len = link->packet.len };
        struct guard_msg msg;

        if (rc < 0) {
            link_ended(link);
            return;
        }
        while ((rc = guard_msg_decode(&reader, &msg)) > 0) {
            link_deliver(link, &msg);
        }
        guard_packet_close(&link->packet);
        if (rc < 0) {
            link_ended(link);
        }
    }
}

static void link_ready(uv_poll_t *poll, int status, int events)
{
    struct guard_link *link = poll->data;

    if (link->stopping || link->ended) {
        return;
    }
    if (status < 0) {
        link_ended(link);
        return;
    }
    if ((events & UV_WRITABLE) != 0) {
        /* An error shows as the end when we read. */
        (void)guard_pair_flush(link->fd, &link->out);
        (void)link_watch(link);
    }
    link_receive(link);
}

int guard_link_start(struct guard_link *link, uv_loop_t *loop, int fd,
                     const struct guard_link_events *events, void *arg)
{
    int rc;

    link->fd = fd;
    link->ended = false;
    link->stopping = false;
    link->out = (struct guard_outbox){ 0 };
    link->events = events;
    link->arg = arg;
    rc = uv_poll_init(loop, &link->poll, fd);
    if (rc < 0) {
        return rc;
    }
    link->poll.data = link;
    rc = link_watch(link);
    if (rc < 0) {
        guard_link_stop(link);
    }
    return rc;
}

int guard_link_send(struct guard_link *link, const struct guard_msg *msg)
{
    int rc;

    if (link->ended || link->stopping) {
        return -ECONNRESET;
    }
    rc = guard_outbox_put(&link->out, msg, NULL);
    if (rc == 0) {
        rc = guard_pair_flush(link->fd, &link->out);
    }
    return rc > 0 ? link_watch(link) : rc;
}
