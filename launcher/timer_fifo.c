#include "launcher/timer_fifo.h"

#include "common/env_names.h"
#include "common/log.h"
#include "launcher/uuid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The clock may be set meanwhile: look again after this time at the latest. */
#define LOOK_MAX_S 10.0

char *timer_fifo_name(void)
{
    const char *given = getenv(ENV_TIMER_FILE);
    const char *tmp = getenv("TMPDIR");
    char uuid[UUID_TEXT_SIZE];
    char *path;

    if (given != NULL && given[0] != '\0') {
        return strdup(given);
    }
    uuid_make(uuid);
    return asprintf(&path, "%s/watchdog_timer_%s",
                    tmp != NULL && tmp[0] == '/' ? tmp : "/tmp", uuid) < 0
               ? NULL
               : path;
}

int timer_fifo_make(const char *path, struct err *err)
{
    struct stat status;

    if (lstat(path, &status) == 0) {
        if (!S_ISFIFO(status.st_mode)) {
            return err_set(err, -EEXIST,
                           "%s=%s is there and is no FIFO: name another file",
                           ENV_TIMER_FILE, path);
        }
        (void)unlink(path);
    }
    if (mkfifo(path, 0600) < 0) {
        return err_sys(err, -errno, "cannot make the watchdog's FIFO %s", path);
    }
    return 0;
}

static double now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void look(uv_timer_t *timer);

static void wait_for_next(struct timer_fifo *fifo)
{
    double expires_s;
    double left_s;

    if (!watchdog_next(&fifo->watchdog, &expires_s)) {
        (void)uv_timer_stop(&fifo->timer);
        return;
    }
    left_s = expires_s - now_s();
    left_s = left_s < 0 ? 0 : left_s < LOOK_MAX_S ? left_s : LOOK_MAX_S;
    uv_update_time(fifo->timer.loop);
    (void)uv_timer_start(&fifo->timer, look, (uint64_t)(left_s * 1000) + 1, 0);
}

static void look(uv_timer_t *timer)
{
    struct timer_fifo *fifo = timer->data;
    struct watchdog_timer expired;
    double now = now_s();

    while (watchdog_expired(&fifo->watchdog, now, &expired)) {
        fifo->expired(&expired, fifo->arg);
    }
    wait_for_next(fifo);
}

static void take_line(struct timer_fifo *fifo)
{
    struct err err = { 0 };

    if (fifo->len > 0 &&
        watchdog_take(&fifo->watchdog, fifo->line, fifo->len, &err) < 0) {
        log_line(LOG_WARN, "watchdog: %s", err.text);
    }
}

static void take_byte(struct timer_fifo *fifo, char byte)
{
    if (byte == '\n') {
        if (!fifo->skipping) {
            take_line(fifo);
        }
        fifo->len = 0;
        fifo->skipping = false;
        return;
    }
    if (fifo->len == sizeof(fifo->line)) {
        fifo->skipping = true;
        return;
    }
    fifo->line[fifo->len++] = byte;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct timer_fifo *fifo = poll->data;
    char bytes[WATCHDOG_LINE_MAX];
    ssize_t n;
    ssize_t i;

    (void)events;
    if (status < 0) {
        return;
    }
    n = read(fifo->fd, bytes, sizeof(bytes));
    for (i = 0; i < n; i++) {
        take_byte(fifo, bytes[i]);
    }
    wait_for_next(fifo);
}

/* For writing too, so that it has no end when the last worker closes it. */
static int fifo_open(const char *path)
{
    int fd = open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;

    if (fd < 0) {
        return -errno;
    }
    if (fstat(fd, &status) < 0 || !S_ISFIFO(status.st_mode) ||
        status.st_uid != geteuid()) {
        (void)close(fd);
        return -EPERM;
    }
    return fd;
}

int timer_fifo_start(struct timer_fifo *fifo, uv_loop_t *loop, const char *path,
                     void (*expired)(const struct watchdog_timer *timer,
                                     void *arg),
                     void *arg, struct err *err)
{
    int fd = fifo_open(path);
    int rc = fd < 0 ? fd : 0;

    if (rc == 0) {
        rc = uv_poll_init(loop, &fifo->poll, fd);
        if (rc < 0) {
            (void)close(fd);
        }
    }
    if (rc < 0) {
        return err_sys(err, rc, "cannot read the watchdog's FIFO %s", path);
    }
    fifo->fd = fd;
    fifo->expired = expired;
    fifo->arg = arg;
    fifo->started = true;
    fifo->poll.data = fifo;
    (void)uv_timer_init(loop, &fifo->timer);
    fifo->timer.data = fifo;
    rc = uv_poll_start(&fifo->poll, UV_READABLE, on_readable);
    return rc < 0 ? err_sys(err, rc, "cannot read the watchdog's FIFO %s", path)
                  : 0;
}

void timer_fifo_forget(struct timer_fifo *fifo)
{
    watchdog_clear(&fifo->watchdog);
    if (fifo->started) {
        (void)uv_timer_stop(&fifo->timer);
    }
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct timer_fifo *fifo = handle->data;

    (void)close(fifo->fd);
}

void timer_fifo_stop(struct timer_fifo *fifo)
{
    timer_fifo_forget(fifo);
    if (fifo->started) {
        fifo->started = false;
        uv_close((uv_handle_t *)&fifo->poll, on_poll_closed);
        uv_close((uv_handle_t *)&fifo->timer, NULL);
    }
}
