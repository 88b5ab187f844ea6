#include "launcher/tail.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#define LOOK_MS 5
/* Without inotify: rare enough to cost nothing, often enough for a person. */
#define LOOK_BLIND_MS 50

static void timer_came(uv_timer_t *timer)
{
    tail_look_now(timer->data);
}

static void look_soon(struct tail *tail)
{
    uint64_t every_ms = tail->blind ? LOOK_BLIND_MS : LOOK_MS;

    if (!uv_is_active((uv_handle_t *)&tail->timer)) {
        (void)uv_timer_start(&tail->timer, timer_came, 0, every_ms);
    }
}

/* By its descriptor: what has the file's name now may be another file. */
static void arm(struct tail *tail, struct tail_file *file)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
    file->watch =
        inotify_add_watch(tail->inotify, path, IN_MODIFY | IN_ONESHOT);
}

/*
 * Look until it is quiet, then arm, and look once more: data may have come in
 * between. True when time brings the next look, not an event or room.
 */
static bool look_at(struct tail *tail, struct tail_file *file)
{
    enum tail_look found = tail->look(file->owner);

    if (found == TAIL_QUIET && !tail->blind) {
        arm(tail, file);
        found = tail->look(file->owner);
        file->hot = found != TAIL_QUIET || file->watch < 0;
    }
    return file->hot && found != TAIL_FULL;
}

void tail_look_now(struct tail *tail)
{
    struct tail_file *file;
    struct tail_file *next;
    bool again = false;

    for (file = tail->files; file != NULL; file = next) {
        next = file->next;
        if (file->hot) {
            again = look_at(tail, file) || again;
        }
    }
    if (again) {
        look_soon(tail);
    } else {
        (void)uv_timer_stop(&tail->timer);
    }
}

static void watch_came(uv_poll_t *poll, int status, int events)
{
    /* Aligned as the events in it must be. */
    union {
        char space[4096];
        struct inotify_event align;
    } news;
    struct tail *tail = poll->data;
    ssize_t len = read(tail->inotify, &news, sizeof(news));
    ssize_t at = 0;

    (void)status;
    (void)events;
    while (at < len) {
        const struct inotify_event *event =
            (const struct inotify_event *)(const void *)(news.space + at);
        struct tail_file *file;

        for (file = tail->files; file != NULL; file = file->next) {
            if (file->watch == event->wd && (event->mask & IN_MODIFY) != 0) {
                file->hot = true;
                look_soon(tail);
            }
        }
        at += (ssize_t)(sizeof(*event) + event->len);
    }
}

static void handle_closed(uv_handle_t *handle)
{
    struct tail *tail = handle->data;

    if (--tail->open_handles == 0) {
        if (tail->inotify >= 0) {
            (void)close(tail->inotify);
        }
        tail->on_closed(tail->arg);
    }
}

void tail_start(struct tail *tail, uv_loop_t *loop, tail_look_fn *look,
                void (*on_closed)(void *arg), void *arg)
{
    *tail = (struct tail){ .inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC),
                           .open_handles = 1,
                           .look = look,
                           .on_closed = on_closed,
                           .arg = arg };
    if (tail->inotify >= 0 &&
        uv_poll_init(loop, &tail->poll, tail->inotify) < 0) {
        (void)close(tail->inotify);
        tail->inotify = -1;
    }
    (void)uv_timer_init(loop, &tail->timer);
    tail->timer.data = tail;
    tail->blind = tail->inotify < 0;
    if (tail->inotify >= 0) {
        tail->poll.data = tail;
        tail->open_handles = 2;
        tail->blind = uv_poll_start(&tail->poll, UV_READABLE, watch_came) < 0;
    }
}

void tail_add(struct tail *tail, struct tail_file *file)
{
    file->watch = -1;
    file->hot = true;
    file->next = tail->files;
    tail->files = file;
    look_soon(tail);
}

void tail_remove(struct tail *tail, struct tail_file *file)
{
    struct tail_file **at = &tail->files;

    while (*at != NULL && *at != file) {
        at = &(*at)->next;
    }
    if (*at == NULL) {
        return;
    }
    *at = file->next;
    if (file->watch >= 0) {
        (void)inotify_rm_watch(tail->inotify, file->watch);
    }
}

void tail_stop(struct tail *tail)
{
    if (tail->stopping) {
        return;
    }
    tail->stopping = true;
    uv_close((uv_handle_t *)&tail->timer, handle_closed);
    if (tail->open_handles == 2) {
        uv_close((uv_handle_t *)&tail->poll, handle_closed);
    }
}
