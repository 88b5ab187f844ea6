/*
 * Load for a store, from one thread for each process.
 *
 *   store_load rate KIND HOST PORT CONNECTIONS DEPTH MS KEYS OP
 *       KIND is tcpstore, redis or echo; OP get or add. Each connection has
 *       DEPTH requests under way, sent in one write; the next come when all
 *       are answered. Prints requests a second, and the microseconds that a
 *       write and its replies took: p50, p99, p99.9, most.
 *   store_load join HOST PORT N PROCESSES
 *       N clients connect at once and say VALIDATE, PING, ADD init/. Prints
 *       the milliseconds until all are answered: p50, p99, most, and errors.
 *   store_load job HOST PORT RANKS PROCESSES
 *       The start of a NCCL job: as join, then rank 0 sets an id that all wait
 *       for and get, and each makes one CHECK.
 *   store_load hold HOST PORT N
 *       N connections that have said hello and are silent, until stdin ends.
 *   store_load fill HOST PORT N
 *       Sets N keys.
 */
#include "common/buf.h"
#include "common/clock.h"
#include "common/store_proto.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define VALUE_LEN 32
#define EVENTS 512
#define CLIENT_MS 60000

static void die(const char *what)
{
    (void)fprintf(stderr, "store_load: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* --- requests ----------------------------------------------------------------
 */

static void put_op(struct buf *out, enum store_op op)
{
    if (buf_append_u8(out, (uint8_t)store_opcode(STORE_DIALECT_D, op)) < 0) {
        die("no memory");
    }
}

static void put_text(struct buf *out, const char *text)
{
    if (store_put_str(out, text, strlen(text)) < 0) {
        die("no memory");
    }
}

static void put_hello(struct buf *out)
{
    put_op(out, STORE_OP_VALIDATE);
    (void)buf_append_u32(out, STORE_MAGIC);
}

static void put_key(struct buf *out, enum store_op op, const char *key)
{
    put_op(out, op);
    if (op == STORE_OP_WAIT || op == STORE_OP_CHECK) {
        (void)buf_append_u64(out, 1);
    }
    put_text(out, key);
}

static void put_add(struct buf *out, const char *key, uint64_t delta)
{
    put_key(out, STORE_OP_ADD, key);
    (void)buf_append_u64(out, delta);
}

static void put_set(struct buf *out, const char *key, const void *value,
                    size_t len)
{
    put_key(out, STORE_OP_SET, key);
    if (store_put_str(out, value, len) < 0) {
        die("no memory");
    }
}

/* --- connections
 * -------------------------------------------------------------- */

static struct sockaddr_in server;

static void server_set(const char *host, const char *port)
{
    server.sin_family = AF_INET;
    server.sin_port = htons((uint16_t)atoi(port));
    if (inet_pton(AF_INET, host, &server.sin_addr) != 1) {
        die(host);
    }
}

static void raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/*
 * Each process comes from an address of its own, so that the kernel need not
 * look for a free port among thousands that are taken.
 */
static void client_bind(int fd)
{
    const struct sockaddr_in from = {
        .sin_family = AF_INET,
        .sin_addr.s_addr =
            htonl(INADDR_LOOPBACK + (((uint32_t)getpid() & 0xffff) << 8)),
    };
    const int on = 1;

    if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) <
            0 ||
        bind(fd, (const struct sockaddr *)&from, sizeof(from)) < 0) {
        die("bind");
    }
}

static int client_connect(int flags)
{
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

    if (fd < 0) {
        die("socket");
    }
    client_bind(fd);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, (struct sockaddr *)&server, sizeof(server)) < 0 &&
        errno != EINPROGRESS) {
        die("connect");
    }
    return fd;
}

static void send_all(int fd, const struct buf *bytes)
{
    size_t at = 0;

    while (at < bytes->len) {
        ssize_t n = send(fd, bytes->data + at, bytes->len - at, MSG_NOSIGNAL);

        if (n < 0) {
            die("send");
        }
        at += (size_t)n;
    }
}

static void receive_all(int fd, size_t len)
{
    char data[4096];

    while (len > 0) {
        ssize_t n = recv(fd, data, len < sizeof(data) ? len : sizeof(data), 0);

        if (n <= 0) {
            die("receive");
        }
        len -= (size_t)n;
    }
}

/* --- figures
 * -------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static uint64_t quantile(const uint64_t *sorted, size_t n, double q)
{
    size_t at = (size_t)((double)n * q);

    return n == 0 ? 0 : sorted[at < n ? at : n - 1];
}

/* --- rate
 * ------------------------------------------------------------------------ */

struct stream {
    int fd;
    size_t missing; /* bytes of replies */
    uint64_t sent_ns;
    struct buf request;
};

enum kind {
    KIND_TCPSTORE,
    KIND_REDIS,
    KIND_ECHO,
};

struct rate {
    enum kind kind;
    bool add;
    size_t depth;
    size_t n_keys;
    size_t reply_len; /* of one request */
};

static void key_of(char *text, size_t size, size_t number)
{
    (void)snprintf(text, size, "/bench/%07zu", number);
}

/* One request; a counter of redis and ours has as many digits. */
static void put_request(struct buf *out, const struct rate *rate, size_t number)
{
    char key[32];
    char text[128];

    key_of(key, sizeof(key), number % rate->n_keys);
    switch (rate->kind) {
    case KIND_TCPSTORE:
        if (rate->add) {
            put_add(out, "/bench/counter", 1);
        } else {
            put_key(out, STORE_OP_GET, key);
        }
        break;
    case KIND_REDIS:
        (void)snprintf(text, sizeof(text),
                       rate->add ? "*2\r\n$4\r\nINCR\r\n$14\r\n/bench/counter"
                                   "\r\n"
                                 : "*2\r\n$3\r\nGET\r\n$14\r\n%s\r\n",
                       key);
        if (buf_append(out, text, strlen(text)) < 0) {
            die("no memory");
        }
        break;
    case KIND_ECHO:
        /* As many bytes there and back as a get of ours. */
        memset(text, 'x', sizeof(text));
        if (buf_append(out, text, (1 + 8 + 14 + 8 + VALUE_LEN + 1) / 2) < 0) {
            die("no memory");
        }
        break;
    }
}

/* Keys to get, and a counter whose reply stays as long as it is. */
static void prepare(const struct rate *rate)
{
    char value[VALUE_LEN];
    struct buf out = { 0 };
    int fd = client_connect(0);
    char key[32];

    memset(value, 'v', sizeof(value));
    key_of(key, sizeof(key), 0);
    if (rate->kind == KIND_TCPSTORE) {
        put_hello(&out);
        put_set(&out, key, value, sizeof(value));
        put_set(&out, "/bench/counter", "1000000000", 10);
        put_op(&out, STORE_OP_GETNUMKEYS);
        send_all(fd, &out);
        receive_all(fd, 8);
    } else if (rate->kind == KIND_REDIS) {
        char text[256];

        (void)snprintf(text, sizeof(text),
                       "*3\r\n$3\r\nSET\r\n$14\r\n%s\r\n$32\r\n%.32s\r\n"
                       "*3\r\n$3\r\nSET\r\n$14\r\n/bench/counter\r\n$10\r\n"
                       "1000000000\r\n",
                       key, value);
        (void)buf_append(&out, text, strlen(text));
        send_all(fd, &out);
        receive_all(fd, 10);
    }
    buf_destroy(&out);
    (void)close(fd);
}

static void stream_send(struct stream *stream, const struct rate *rate)
{
    stream->missing = rate->depth * rate->reply_len;
    stream->sent_ns = clock_ns();
    send_all(stream->fd, &stream->request);
}

static void stream_open(struct stream *stream, const struct rate *rate,
                        size_t number)
{
    size_t i;

    stream->fd = client_connect(0);
    if (rate->kind == KIND_TCPSTORE) {
        struct buf hello = { 0 };

        put_hello(&hello);
        put_op(&hello, STORE_OP_GETNUMKEYS);
        send_all(stream->fd, &hello);
        receive_all(stream->fd, 8);
        buf_destroy(&hello);
    }
    for (i = 0; i < rate->depth; i++) {
        /* Spread over all keys, and far apart in memory. */
        put_request(&stream->request, rate, (number * rate->depth + i) * 7919);
    }
}

static void rate_run(struct stream *streams, size_t n, const struct rate *rate,
                     uint64_t ms)
{
    static char data[256 * 1024];
    struct epoll_event events[EVENTS];
    size_t n_times = 0;
    size_t cap = 1 << 20;
    uint64_t *times = malloc(cap * sizeof(*times));
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    uint64_t begin_ns;
    uint64_t end_ns;
    size_t i;

    for (i = 0; i < n; i++) {
        struct epoll_event event = { .events = EPOLLIN,
                                     .data.ptr = &streams[i] };

        if (epoll_ctl(epoll, EPOLL_CTL_ADD, streams[i].fd, &event) < 0) {
            die("epoll");
        }
    }
    begin_ns = clock_ns();
    end_ns = begin_ns + ms * 1000000;
    for (i = 0; i < n; i++) {
        stream_send(&streams[i], rate);
    }
    while (clock_ns() < end_ns) {
        int n_events = epoll_wait(epoll, events, EVENTS, 1000);

        for (int e = 0; e < n_events; e++) {
            struct stream *stream = events[e].data.ptr;
            ssize_t got = recv(stream->fd, data, sizeof(data), MSG_DONTWAIT);

            if (got <= 0 || (size_t)got > stream->missing) {
                die("receive");
            }
            stream->missing -= (size_t)got;
            if (stream->missing > 0) {
                continue;
            }
            if (n_times == cap) {
                cap *= 2;
                times = realloc(times, cap * sizeof(*times));
            }
            if (times == NULL) {
                die("no memory");
            }
            times[n_times++] = clock_ns() - stream->sent_ns;
            stream_send(stream, rate);
        }
    }
    end_ns = clock_ns();
    qsort(times, n_times, sizeof(*times), compare);
    (void)printf("%.0f %.1f %.1f %.1f %.1f\n",
                 (double)(n_times * rate->depth) * 1e9 /
                     (double)(end_ns - begin_ns),
                 (double)quantile(times, n_times, .5) / 1e3,
                 (double)quantile(times, n_times, .99) / 1e3,
                 (double)quantile(times, n_times, .999) / 1e3,
                 (double)quantile(times, n_times, 1) / 1e3);
    free(times);
    (void)close(epoll);
}

static int rate_main(char **argv)
{
    size_t n = (size_t)atol(argv[5]);
    struct rate rate = {
        .kind = strcmp(argv[2], "redis") == 0  ? KIND_REDIS
                : strcmp(argv[2], "echo") == 0 ? KIND_ECHO
                                               : KIND_TCPSTORE,
        .add = strcmp(argv[9], "add") == 0,
        .depth = (size_t)atol(argv[6]),
        .n_keys = (size_t)atol(argv[8]),
    };
    struct stream *streams = calloc(n, sizeof(*streams));
    size_t i;

    if (streams == NULL) {
        die("no memory");
    }
    switch (rate.kind) {
    case KIND_TCPSTORE:
        rate.reply_len = rate.add ? 8 : 8 + VALUE_LEN;
        break;
    case KIND_REDIS:
        rate.reply_len = rate.add ? 1 + 10 + 2 : 5 + VALUE_LEN + 2;
        break;
    case KIND_ECHO:
        rate.reply_len = (1 + 8 + 14 + 8 + VALUE_LEN + 1) / 2;
        break;
    }
    server_set(argv[3], argv[4]);
    if (rate.n_keys == 1) {
        prepare(&rate);
    }
    for (i = 0; i < n; i++) {
        stream_open(&streams[i], &rate, i);
    }
    rate_run(streams, n, &rate, (uint64_t)atol(argv[7]));
    for (i = 0; i < n; i++) {
        buf_destroy(&streams[i].request);
    }
    free(streams);
    return 0;
}

/* --- join and job
 * ------------------------------------------------------------------ */

enum {
    JOIN_STEPS = 1,
    JOB_STEPS = 3
};

/* Shared by all processes. */
struct result {
    uint64_t begin_ns; /* 0 until all are ready */
    uint32_t n_ready;
    uint32_t n_errors;
    uint64_t times[]; /* of each client, in nanoseconds; 0: an error */
};

struct client {
    int fd;
    int step; /* -1: connecting */
    size_t missing;
};

static const char id_key[] = "/default_pg/0//cuda//0";

/* What a client says at each step, and how many bytes answer it. */
static size_t step_put(struct buf *out, int step, size_t rank)
{
    static const char id[128];

    out->len = 0;
    switch (step) {
    case 0:
        put_hello(out);
        put_op(out, STORE_OP_PING);
        (void)buf_append_u32(out, (uint32_t)rank);
        put_add(out, "init/", 1);
        return 4 + 8;
    case 1: /* as PyTorch's client: WAIT, then GET when it is answered */
        if (rank == 0) {
            put_set(out, id_key, id, sizeof(id));
        }
        put_key(out, STORE_OP_WAIT, id_key);
        return 1;
    case 2:
        put_key(out, STORE_OP_GET, id_key);
        return 8 + sizeof(id);
    default:
        put_key(out, STORE_OP_CHECK, "/exception_dump");
        return 1;
    }
}

/* Its next step: false when that was the last. */
static bool client_step(struct client *client, size_t rank, int n_steps)
{
    struct buf out = { 0 };
    bool sent;

    if (++client->step > n_steps) {
        return false;
    }
    client->missing = step_put(&out, client->step, rank);
    sent =
        send(client->fd, out.data, out.len, MSG_NOSIGNAL) == (ssize_t)out.len;
    buf_destroy(&out);
    if (!sent) {
        client->missing = 0;
        errno = ECONNRESET;
    }
    return sent;
}

static void clients_run(struct result *result, size_t first, size_t n,
                        int n_steps)
{
    struct client *clients = calloc(n, sizeof(*clients));
    struct epoll_event events[EVENTS];
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    uint64_t end_ms;
    size_t n_left = n;
    size_t i;

    if (clients == NULL || epoll < 0) {
        die("no memory");
    }
    (void)__atomic_add_fetch(&result->n_ready, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&result->begin_ns, __ATOMIC_SEQ_CST) == 0) {
        clock_sleep_ms(1);
    }
    end_ms = clock_deadline(CLIENT_MS);
    for (i = 0; i < n; i++) {
        struct epoll_event event = { .events = EPOLLOUT, .data.u64 = i };

        clients[i] =
            (struct client){ .fd = client_connect(SOCK_NONBLOCK), .step = -1 };
        (void)epoll_ctl(epoll, EPOLL_CTL_ADD, clients[i].fd, &event);
    }
    while (n_left > 0 && clock_ms() < end_ms) {
        int n_events = epoll_wait(epoll, events, EVENTS, 100);

        for (int e = 0; e < n_events; e++) {
            size_t at = (size_t)events[e].data.u64;
            struct client *client = &clients[at];
            char data[512];
            bool go_on = true;

            if (client->step < 0) {
                struct epoll_event event = { .events = EPOLLIN,
                                             .data.u64 = at };

                (void)epoll_ctl(epoll, EPOLL_CTL_MOD, client->fd, &event);
                go_on = client_step(client, first + at, n_steps - 1);
            } else {
                ssize_t got = recv(client->fd, data, sizeof(data), 0);

                if (got <= 0 || (size_t)got > client->missing) {
                    go_on = false;
                    client->step = 0;
                    client->missing = 1;
                } else {
                    client->missing -= (size_t)got;
                    if (client->missing == 0) {
                        go_on = client_step(client, first + at, n_steps - 1);
                    }
                }
            }
            if (!go_on) {
                if (client->step >= n_steps) {
                    result->times[first + at] = clock_ns() - result->begin_ns;
                }
                (void)epoll_ctl(epoll, EPOLL_CTL_DEL, client->fd, NULL);
                n_left--;
            }
        }
    }
    /* They stay until all are there, as the ranks of a job do. */
    (void)__atomic_sub_fetch(&result->n_ready, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&result->n_ready, __ATOMIC_SEQ_CST) > 0) {
        clock_sleep_ms(5);
    }
}

static int join_main(char **argv, int n_steps)
{
    size_t n = (size_t)atol(argv[4]);
    size_t n_processes = (size_t)atol(argv[5]);
    size_t size = sizeof(struct result) + n * sizeof(uint64_t);
    struct result *result = mmap(NULL, size, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    size_t n_errors = 0;
    size_t i;

    if (result == MAP_FAILED) {
        die("no memory");
    }
    server_set(argv[2], argv[3]);
    for (i = 0; i < n_processes; i++) {
        size_t first = n * i / n_processes;

        if (fork() == 0) {
            clients_run(result, first, n * (i + 1) / n_processes - first,
                        n_steps);
            _exit(0);
        }
    }
    while (__atomic_load_n(&result->n_ready, __ATOMIC_SEQ_CST) < n_processes) {
        clock_sleep_ms(1);
    }
    __atomic_store_n(&result->begin_ns, clock_ns(), __ATOMIC_SEQ_CST);
    while (wait(NULL) > 0) {
    }
    for (i = 0; i < n; i++) {
        n_errors += result->times[i] == 0;
    }
    qsort(result->times, n, sizeof(uint64_t), compare);
    (void)printf("%.1f %.1f %.1f %zu\n",
                 (double)quantile(result->times, n, .5) / 1e6,
                 (double)quantile(result->times, n, .99) / 1e6,
                 (double)quantile(result->times, n, 1) / 1e6, n_errors);
    return 0;
}

/* --- hold and fill
 * ------------------------------------------------------------------- */

static int hold_main(char **argv)
{
    size_t n = (size_t)atol(argv[4]);
    struct buf hello = { 0 };
    char byte;
    size_t i;

    server_set(argv[2], argv[3]);
    put_hello(&hello);
    put_op(&hello, STORE_OP_GETNUMKEYS);
    for (i = 0; i < n; i++) {
        int fd = client_connect(0);

        send_all(fd, &hello);
        receive_all(fd, 8);
    }
    buf_destroy(&hello);
    (void)puts("ready");
    (void)fflush(stdout);
    return read(STDIN_FILENO, &byte, 1) < 0;
}

static int fill_main(char **argv)
{
    size_t n = (size_t)atol(argv[4]);
    struct buf out = { 0 };
    char value[VALUE_LEN];
    char key[32];
    size_t i;
    int fd;

    server_set(argv[2], argv[3]);
    fd = client_connect(0);
    memset(value, 'v', sizeof(value));
    put_hello(&out);
    for (i = 0; i < n; i++) {
        key_of(key, sizeof(key), i);
        put_set(&out, key, value, sizeof(value));
        if (out.len > 60000) {
            send_all(fd, &out);
            out.len = 0;
        }
    }
    put_op(&out, STORE_OP_GETNUMKEYS);
    send_all(fd, &out);
    receive_all(fd, 8);
    buf_destroy(&out);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    raise_limit();
    if (strcmp(what, "rate") == 0 && argc == 10) {
        return rate_main(argv);
    }
    if (strcmp(what, "join") == 0 && argc == 6) {
        return join_main(argv, JOIN_STEPS);
    }
    if (strcmp(what, "job") == 0 && argc == 6) {
        return join_main(argv, JOB_STEPS + 1);
    }
    if (strcmp(what, "hold") == 0 && argc == 5) {
        return hold_main(argv);
    }
    if (strcmp(what, "fill") == 0 && argc == 5) {
        return fill_main(argv);
    }
    (void)fprintf(stderr, "store_load: wrong arguments\n");
    return 2;
}
