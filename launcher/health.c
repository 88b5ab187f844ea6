#include "launcher/health.h"

#include "common/env_names.h"
#include "common/parse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BACKLOG 64

static void on_connection(uv_stream_t *stream, int status);

static void on_client_closed(uv_handle_t *handle)
{
    struct health_client *client = handle->data;
    struct health *health = client->health;

    client->n_open--;
    if (client->n_open > 0) {
        return;
    }
    client->used = false;
    if (health->n_waiting > 0 && health->started) {
        health->n_waiting--;
        on_connection((uv_stream_t *)&health->listener, 0);
    }
}

static void client_close(struct health_client *client)
{
    if (!uv_is_closing((uv_handle_t *)&client->tcp)) {
        uv_close((uv_handle_t *)&client->tcp, on_client_closed);
        uv_close((uv_handle_t *)&client->timer, on_client_closed);
    }
}

static void on_too_late(uv_timer_t *timer)
{
    client_close(timer->data);
}

static void on_written(uv_write_t *write, int status)
{
    (void)status;
    client_close(write->data);
}

static void answer(struct health_client *client)
{
    bool head = strncmp(client->request, "HEAD ", 5) == 0;
    bool get = strncmp(client->request, "GET ", 4) == 0;
    const char *state = client->health->state(client->health->arg);
    uv_buf_t piece;
    int n;

    if (head || get) {
        n = snprintf(client->answer, sizeof(client->answer),
                     "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                     "Content-Length: %zu\r\nConnection: close\r\n\r\n%s%s",
                     strlen(state) + 1, get ? state : "", get ? "\n" : "");
    } else {
        n = snprintf(client->answer, sizeof(client->answer),
                     "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\n"
                     "Content-Length: 0\r\nConnection: close\r\n\r\n");
    }
    piece = uv_buf_init(client->answer, (unsigned)n);
    client->write.data = client;
    (void)uv_read_stop((uv_stream_t *)&client->tcp);
    if (uv_write(&client->write, (uv_stream_t *)&client->tcp, &piece, 1,
                 on_written) < 0) {
        client_close(client);
    }
}

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct health_client *client = handle->data;

    (void)suggested;
    /* One byte stays for the end of the text. */
    *buf = uv_buf_init(client->request + client->len,
                       (unsigned)(sizeof(client->request) - 1 - client->len));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct health_client *client = stream->data;

    (void)buf;
    if (n < 0) {
        client_close(client);
        return;
    }
    client->len += (size_t)n;
    client->request[client->len] = '\0';
    if (strstr(client->request, "\r\n\r\n") != NULL ||
        strstr(client->request, "\n\n") != NULL) {
        answer(client);
    } else if (client->len == sizeof(client->request) - 1) {
        client_close(client);
    }
}

static struct health_client *find_place(struct health *health)
{
    size_t i;

    for (i = 0; i < HEALTH_CLIENTS_MAX; i++) {
        if (!health->clients[i].used) {
            return &health->clients[i];
        }
    }
    return NULL;
}

static void on_connection(uv_stream_t *stream, int status)
{
    struct health *health = stream->data;
    struct health_client *client = find_place(health);

    if (status < 0 || !health->started) {
        return;
    }
    if (client == NULL) {
        health->n_waiting++; /* accepted when one leaves */
        return;
    }
    client->health = health;
    client->used = true;
    client->n_open = 2;
    client->len = 0;
    (void)uv_tcp_init(stream->loop, &client->tcp);
    (void)uv_timer_init(stream->loop, &client->timer);
    client->tcp.data = client;
    client->timer.data = client;
    (void)uv_timer_start(&client->timer, on_too_late, HEALTH_TIMEOUT_MS, 0);
    if (uv_accept(stream, (uv_stream_t *)&client->tcp) < 0 ||
        uv_read_start((uv_stream_t *)&client->tcp, give_room, on_read) < 0) {
        client_close(client);
    }
}

/* 0 or -EINVAL. */
static int read_address(const char *where, struct sockaddr_storage *address)
{
    char host[64] = "127.0.0.1";
    uint16_t port;
    int64_t number;

    if (parse_int(where, 1, UINT16_MAX, &number) == 0) {
        port = (uint16_t)number;
    } else if (parse_host_port(where, host, sizeof(host), &port) < 0) {
        return -EINVAL;
    }
    if (uv_ip4_addr(host, port, (struct sockaddr_in *)address) == 0) {
        return 0;
    }
    return uv_ip6_addr(host, port, (struct sockaddr_in6 *)address) == 0
               ? 0
               : -EINVAL;
}

int health_start(struct health *health, uv_loop_t *loop, const char *where,
                 const char *(*state)(void *arg), void *arg, struct err *err)
{
    struct sockaddr_storage address = { 0 };
    int rc = read_address(where, &address);

    if (rc < 0) {
        return err_set(err, rc,
                       "no health check: %s=%.64s: give PORT, or ADDRESS:PORT "
                       "such as 0.0.0.0:8080",
                       ENV_HEALTH_CHECK_PORT, where);
    }
    (void)uv_tcp_init(loop, &health->listener);
    health->listener.data = health;
    health->state = state;
    health->arg = arg;
    rc = uv_tcp_bind(&health->listener, (struct sockaddr *)&address, 0);
    if (rc == 0) {
        rc =
            uv_listen((uv_stream_t *)&health->listener, BACKLOG, on_connection);
    }
    if (rc < 0) {
        uv_close((uv_handle_t *)&health->listener, NULL);
        return err_sys(err, rc, "no health check at %.64s", where);
    }
    health->started = true;
    return 0;
}

void health_stop(struct health *health)
{
    size_t i;

    if (!health->started) {
        return;
    }
    health->started = false;
    uv_close((uv_handle_t *)&health->listener, NULL);
    for (i = 0; i < HEALTH_CLIENTS_MAX; i++) {
        if (health->clients[i].used) {
            client_close(&health->clients[i]);
        }
    }
}
