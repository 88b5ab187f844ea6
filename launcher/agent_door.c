#include "launcher/agent_door.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Put it behind the others: false where there are too many. */
static bool door_queue(struct agent_door *door, struct agent_arrival *arrival)
{
    bool room;

    uv_mutex_lock(&door->mutex);
    room = door->n < AGENT_DOOR_MAX;
    if (room) {
        *door->last = arrival;
        door->last = &arrival->next;
        door->n++;
    }
    uv_mutex_unlock(&door->mutex);
    return room;
}

/* Runs on the store's thread. */
static void door_take(int fd, const uint8_t *head, size_t len, void *arg)
{
    struct agent_door *door = arg;
    struct agent_arrival *arrival = malloc(sizeof(*arrival) + len);

    if (arrival == NULL) {
        (void)close(fd);
        return;
    }
    arrival->fd = fd;
    arrival->next = NULL;
    arrival->len = len;
    memcpy(arrival->head, head, len);
    if (!door_queue(door, arrival)) {
        (void)close(fd);
        free(arrival);
        return;
    }
    (void)uv_async_send(&door->async);
}

/* All that have come. */
static struct agent_arrival *door_empty(struct agent_door *door)
{
    struct agent_arrival *list;

    uv_mutex_lock(&door->mutex);
    list = door->first;
    door->first = NULL;
    door->last = &door->first;
    door->n = 0;
    uv_mutex_unlock(&door->mutex);
    return list;
}

static void somebody_came(uv_async_t *async)
{
    struct agent_door *door = async->data;
    struct agent_arrival *list = door_empty(door);

    while (list != NULL) {
        struct agent_arrival *arrival = list;

        list = arrival->next;
        if (door->closed) {
            (void)close(arrival->fd);
        } else {
            door->come(arrival->fd, arrival->head, arrival->len, door->arg);
        }
        free(arrival);
    }
}

static void door_closed(uv_handle_t *handle)
{
    struct agent_door *door = handle->data;

    uv_mutex_destroy(&door->mutex);
    door->on_closed(door->arg);
}

int agent_door_open(struct agent_door *door, uv_loop_t *loop,
                    void (*come)(int fd, const uint8_t *head, size_t len,
                                 void *arg),
                    void (*on_closed)(void *arg), void *arg)
{
    int rc;

    *door = (struct agent_door){ .demux = { .take = door_take },
                                 .come = come,
                                 .on_closed = on_closed,
                                 .arg = arg };
    door->demux.arg = door;
    door->last = &door->first;
    rc = uv_mutex_init(&door->mutex);
    if (rc < 0) {
        return rc;
    }
    rc = uv_async_init(loop, &door->async, somebody_came);
    if (rc < 0) {
        uv_mutex_destroy(&door->mutex);
        return rc;
    }
    door->async.data = door;
    return 0;
}

void agent_door_close(struct agent_door *door)
{
    if (door->closed) {
        return;
    }
    door->closed = true;
    somebody_came(&door->async); /* closes whatever waits */
    uv_close((uv_handle_t *)&door->async, door_closed);
}
