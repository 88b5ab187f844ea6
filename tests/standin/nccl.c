/*
 * NCCL on host memory: see standin.h.
 *
 * The process that makes a unique id listens at the address in it. Every rank
 * first shows itself to the root of its block of ranks (one id: the only one),
 * then connects to the first id's, the hub, which passes all data: each rank
 * sends its part of a collective, the hub computes, each gets its result. A
 * rank's own thread sends what its process enqueues, in order.
 */
#include "tests/standin/standin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NCCL "STANDIN_NCCL"
#define ID_LEN 128

enum {
    OK = 0,
    UNHANDLED_CUDA = 1,
    SYSTEM_ERROR = 2,
    INVALID_ARGUMENT = 4,
    INVALID_USAGE = 5,
    REMOTE_ERROR = 6,
    IN_PROGRESS = 7,
};

typedef struct {
    char internal[ID_LEN];
} id_t_;

struct id_content {
    uint64_t magic;
    struct sockaddr_in address;
};

typedef struct {
    size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
} config_t;

enum op {
    OP_ALL_REDUCE,
    OP_BROADCAST,
    OP_ALL_GATHER,
    OP_BYE
};

/* A rank to a root or hub. */
struct hello {
    uint64_t magic;
    int32_t kind; /* 0: to the root of its block; 1: to the hub */
    int32_t rank;
    int32_t n_ranks;
    int32_t n_expected; /* of that kind, at that root */
};

struct header {
    int32_t op;
    int32_t type;
    int32_t reduction;
    int32_t root;
    uint64_t count;
};

struct task {
    struct header header;
    const void *in;
    void *out;
    struct CUstream_st *stream;
    bool split; /* see comm_split */
    int color;
    int key;
    struct ncclComm **split_out;
    struct task *next;
};

struct ncclComm {
    int rank;
    int n_ranks;
    int n_ids;
    id_t_ *ids;
    int fd;
    atomic_int state;
    atomic_bool stop;
    bool finalized;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t news;
    struct task *first;
    struct task **last;
};

static char last_error[256];

static int fail(int result, const char *text)
{
    (void)snprintf(last_error, sizeof(last_error), "%s", text);
    return result;
}

/* --- bytes ----------------------------------------------------------------
 */

/* All of it, or -1; looks at stop every now and then. */
static int move(int fd, void *data, size_t len, bool out, atomic_bool *stop)
{
    char *p = data;

    while (len > 0) {
        struct pollfd pair = { .fd = fd, .events = out ? POLLOUT : POLLIN };
        ssize_t n;

        if (poll(&pair, 1, 50) == 0) {
            if (stop != NULL && atomic_load(stop)) {
                return -1;
            }
            continue;
        }
        n = out ? send(fd, p, len, MSG_NOSIGNAL) : recv(fd, p, len, 0);
        if (n <= 0) {
            return -1;
        }
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

static size_t type_size(int type)
{
    switch (type) {
    case 0:
    case 1:
        return 1;
    case 6:
    case 9:
        return 2;
    case 2:
    case 3:
    case 7:
        return 4;
    default:
        return 8;
    }
}

#define COMBINE(type)                                                          \
    do {                                                                       \
        type *to = sum;                                                        \
        const type *from = data;                                               \
        for (i = 0; i < count; i++) {                                          \
            switch (reduction) {                                               \
            case 1:                                                            \
                to[i] = (type)(to[i] * from[i]);                               \
                break;                                                         \
            case 2:                                                            \
                to[i] = from[i] > to[i] ? from[i] : to[i];                     \
                break;                                                         \
            case 3:                                                            \
                to[i] = from[i] < to[i] ? from[i] : to[i];                     \
                break;                                                         \
            default:                                                           \
                to[i] = (type)(to[i] + from[i]);                               \
            }                                                                  \
        }                                                                      \
    } while (0)

static void combine(void *sum, const void *data, size_t count, int type,
                    int reduction)
{
    size_t i;

    switch (type) {
    case 2:
        COMBINE(int32_t);
        break;
    case 4:
        COMBINE(int64_t);
        break;
    case 7:
        COMBINE(float);
        break;
    case 8:
        COMBINE(double);
        break;
    default:
        break;
    }
}

/* --- root and hub ---------------------------------------------------------
 */

struct root {
    int fd;
    uint64_t magic;
    int *ranks; /* sockets of the hub's, by rank */
    int n_ranks;
    int n_here;
    int *block; /* sockets of those who show themselves */
    int n_block;
};

static void all_say(const int *fds, int n, char byte)
{
    int i;

    for (i = 0; i < n; i++) {
        (void)move(fds[i], &byte, 1, true, NULL);
    }
}

/* One collective: 0, or -1 where a rank is gone or they do not agree. */
static int serve_one(struct root *root)
{
    struct header header = { 0 };
    char yes = 'y';
    char *all;
    size_t len;
    int r;

    for (r = 0; r < root->n_ranks; r++) {
        struct header other;

        if (move(root->ranks[r], &other, sizeof(other), false, NULL) < 0 ||
            (r > 0 && memcmp(&header, &other, sizeof(other)) != 0)) {
            return -1;
        }
        header = other;
    }
    if (header.op == OP_BYE) {
        /* Our own rank comes last: with it the process may end. */
        for (r = root->n_ranks - 1; r >= 0; r--) {
            (void)move(root->ranks[r], &yes, 1, true, NULL);
        }
        return -1;
    }
    len = (size_t)header.count * type_size(header.type);
    all = malloc(len * (size_t)root->n_ranks + 1);
    if (all == NULL) {
        return -1;
    }
    for (r = 0; r < root->n_ranks; r++) {
        if (move(root->ranks[r], all + len * (size_t)r, len, false, NULL) < 0) {
            free(all);
            return -1;
        }
    }
    if (header.op == OP_ALL_REDUCE) {
        for (r = 1; r < root->n_ranks; r++) {
            combine(all, all + len * (size_t)r, (size_t)header.count,
                    header.type, header.reduction);
        }
    }
    for (r = 0; r < root->n_ranks; r++) {
        size_t at = header.op == OP_BROADCAST ? len * (size_t)header.root : 0;
        size_t n =
            header.op == OP_ALL_GATHER ? len * (size_t)root->n_ranks : len;

        (void)move(root->ranks[r], all + at, n, true, NULL);
    }
    free(all);
    return 0;
}

/* A hello: seat it; 1 when all of the hub's are here. */
static int seat(struct root *root, int fd)
{
    struct hello hello;
    char no = 'n';

    if (move(fd, &hello, sizeof(hello), false, NULL) < 0 ||
        hello.magic != root->magic || hello.n_ranks < 1 || hello.rank < 0 ||
        hello.rank >= hello.n_ranks) {
        (void)close(fd); /* a stranger */
        return 0;
    }
    if (hello.kind == 0) {
        root->block =
            realloc(root->block, (size_t)(root->n_block + 1) * sizeof(int));
        root->block[root->n_block++] = fd;
        if (root->n_block == hello.n_expected) {
            all_say(root->block, root->n_block, 'y');
        }
        return 0;
    }
    if (root->ranks == NULL) {
        root->n_ranks = hello.n_ranks;
        root->ranks = calloc((size_t)root->n_ranks, sizeof(int));
    }
    if (hello.n_ranks != root->n_ranks || root->ranks[hello.rank] != 0 ||
        root->n_here == root->n_ranks) {
        (void)move(fd, &no, 1, true, NULL); /* twice, or another world */
        (void)close(fd);
        return 0;
    }
    root->ranks[hello.rank] = fd;
    return ++root->n_here == root->n_ranks;
}

/* Whoever comes with an id that has been used is told. */
static void *refuse(void *arg)
{
    struct root *root = arg;
    char no = 'u';

    for (;;) {
        int fd = accept(root->fd, NULL, NULL);

        if (fd < 0) {
            return NULL;
        }
        (void)send(fd, &no, 1, MSG_NOSIGNAL);
        (void)close(fd);
    }
}

static void *root_run(void *arg)
{
    struct root *root = arg;
    pthread_t thread;

    for (;;) {
        int fd = accept(root->fd, NULL, NULL);

        if (fd < 0) {
            return NULL;
        }
        if (seat(root, fd) == 1) {
            break;
        }
    }
    all_say(root->ranks, root->n_ranks, 'y');
    if (pthread_create(&thread, NULL, refuse, root) == 0) {
        (void)pthread_detach(thread);
    }
    while (serve_one(root) == 0) {
    }
    while (root->n_ranks > 0) {
        (void)close(root->ranks[--root->n_ranks]);
    }
    return NULL;
}

static int make_id(id_t_ *id)
{
    struct root *root = calloc(1, sizeof(*root));
    struct id_content content = { 0 };
    socklen_t len = sizeof(content.address);
    pthread_t thread;

    if (root == NULL) {
        return fail(SYSTEM_ERROR, "out of memory");
    }
    (void)getrandom(&root->magic, sizeof(root->magic), 0);
    content.magic = root->magic;
    content.address.sin_family = AF_INET;
    content.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    root->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(root->fd, (struct sockaddr *)&content.address, len) < 0 ||
        listen(root->fd, 4096) < 0 ||
        getsockname(root->fd, (struct sockaddr *)&content.address, &len) < 0 ||
        pthread_create(&thread, NULL, root_run, root) != 0) {
        return fail(SYSTEM_ERROR, "cannot listen");
    }
    (void)pthread_detach(thread);
    memset(id, 0, sizeof(*id));
    memcpy(id, &content, sizeof(content));
    return OK;
}

/* --- a rank -----------------------------------------------------------------
 */

static void set_state(struct ncclComm *comm, int state)
{
    atomic_store(&comm->state, state);
}

/* Connect to an id's root, say hello, wait for its word. */
static int join(struct ncclComm *comm, const id_t_ *id, int kind,
                int n_expected, int *fd_out)
{
    struct id_content content;
    struct hello hello = { .kind = kind,
                           .rank = comm->rank,
                           .n_ranks = comm->n_ranks,
                           .n_expected = n_expected };
    const int on = 1;
    char word = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(&content, id, sizeof(content));
    hello.magic = content.magic;
    if (connect(fd, (struct sockaddr *)&content.address,
                sizeof(content.address)) < 0) {
        (void)close(fd);
        return fail(REMOTE_ERROR, "connect to the root refused");
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (move(fd, &hello, sizeof(hello), true, &comm->stop) < 0 ||
        move(fd, &word, 1, false, &comm->stop) < 0) {
        (void)close(fd);
        return fail(REMOTE_ERROR, "the root is gone");
    }
    if (word != 'y') {
        (void)close(fd);
        return fail(INVALID_USAGE, word == 'u' ? "a unique id was used twice"
                                               : "a rank came twice");
    }
    *fd_out = fd;
    return OK;
}

/* As NCCL's guide has it: the first ranks mod ids blocks have one more. */
static int block_of(int rank, int n_ranks, int n_ids, int *size_out)
{
    int short_size = n_ranks / n_ids;
    int n_long = n_ranks % n_ids;
    int in_long = n_long * (short_size + 1);
    int block = rank < in_long ? rank / (short_size + 1)
                               : n_long + (rank - in_long) / short_size;

    *size_out = block < n_long ? short_size + 1 : short_size;
    return block;
}

static int bootstrap(struct ncclComm *comm)
{
    int size = 0;
    int block = block_of(comm->rank, comm->n_ranks, comm->n_ids, &size);
    int fd = -1;
    int result = join(comm, &comm->ids[block], 0, size, &fd);

    if (result == OK) {
        (void)close(fd);
        result = join(comm, &comm->ids[0], 1, comm->n_ranks, &comm->fd);
    }
    return result;
}

static void task_done(struct task *task)
{
    struct CUstream_st *stream = task->stream;

    if (stream != NULL) {
        (void)pthread_mutex_lock(&stream->mutex);
        stream->n_pending--;
        (void)pthread_cond_broadcast(&stream->idle);
        (void)pthread_mutex_unlock(&stream->mutex);
    }
    free(task);
}

static int run_collective(struct ncclComm *comm, const struct header *header,
                          const void *in, void *out)
{
    struct header copy = *header;
    size_t len = (size_t)header->count * type_size(header->type);
    size_t out_len =
        header->op == OP_ALL_GATHER ? len * (size_t)comm->n_ranks : len;
    char yes;

    if (header->op == OP_BYE) {
        in = NULL;
        out = &yes;
        len = 0;
        out_len = 1;
    }
    if (move(comm->fd, &copy, sizeof(copy), true, &comm->stop) < 0 ||
        ((move(comm->fd, (void *)(uintptr_t)in, len, true, &comm->stop) < 0 ||
          move(comm->fd, out, out_len, false, &comm->stop) < 0))) {
        return fail(REMOTE_ERROR, "the connection to the other ranks is gone");
    }
    return OK;
}

struct part {
    int32_t color;
    int32_t key;
    id_t_ id;
};

static struct ncclComm *comm_create(int rank, int n_ranks, const id_t_ *ids,
                                    int n_ids);
static int comm_start(struct ncclComm *comm);

/* Everybody makes an id and tells it; each part takes its first member's. */
static int run_split(struct ncclComm *comm, const struct task *task)
{
    struct header header = { .op = OP_ALL_GATHER,
                             .count = sizeof(struct part) };
    struct part mine = { .color = task->color, .key = task->key };
    struct part *parts = calloc((size_t)comm->n_ranks, sizeof(*parts));
    int first = -1;
    int rank = 0;
    int n = 0;
    int result = make_id(&mine.id);
    int r;

    if (result == OK) {
        result = run_collective(comm, &header, &mine, parts);
    }
    for (r = 0; r < comm->n_ranks && result == OK; r++) {
        if (parts[r].color != task->color) {
            continue;
        }
        n++;
        rank += parts[r].key < task->key ||
                (parts[r].key == task->key && r < comm->rank);
        if (first < 0 || parts[r].key < parts[first].key) {
            first = r;
        }
    }
    if (result == OK && task->color >= 0) {
        *task->split_out = comm_create(rank, n, &parts[first].id, 1);
        result = comm_start(*task->split_out);
    }
    free(parts);
    return result;
}

static struct task *next_task(struct ncclComm *comm)
{
    struct task *task;

    (void)pthread_mutex_lock(&comm->mutex);
    while (comm->first == NULL && !atomic_load(&comm->stop)) {
        (void)pthread_cond_wait(&comm->news, &comm->mutex);
    }
    task = atomic_load(&comm->stop) ? NULL : comm->first;
    if (task != NULL) {
        comm->first = task->next;
        if (comm->first == NULL) {
            comm->last = &comm->first;
        }
    }
    (void)pthread_mutex_unlock(&comm->mutex);
    return task;
}

static void serve_tasks(struct ncclComm *comm)
{
    struct task *task;

    while ((task = next_task(comm)) != NULL) {
        bool bye = task->header.op == OP_BYE;
        int result = task->split ? run_split(comm, task)
                                 : run_collective(comm, &task->header, task->in,
                                                  task->out);
        bool announce = task->split || bye;

        if (result == OK) {
            task_done(task);
        } /* else the stream stays busy, as a kernel that spins */
        if (result != OK || announce) {
            set_state(comm, result);
        }
        if (result != OK || bye) {
            return;
        }
    }
}

/* What the script has instead of a good initialisation. */
static bool scripted_init(struct ncclComm *comm)
{
    char value[64];

    if (!script_get(NCCL, "init", value)) {
        return false;
    }
    if (strcmp(value, "never") == 0) {
        while (!atomic_load(&comm->stop)) {
            (void)usleep(10000);
        }
        return true;
    }
    if (strncmp(value, "later:", 6) == 0) {
        (void)usleep(30000);
        set_state(comm, fail(atoi(value + 6), "scripted to fail later"));
        return true;
    }
    return false;
}

static void *comm_run(void *arg)
{
    struct ncclComm *comm = arg;
    int result;

    if (scripted_init(comm)) {
        return NULL;
    }
    result = bootstrap(comm);
    set_state(comm, result);
    if (result == OK) {
        serve_tasks(comm);
    }
    return NULL;
}

static struct ncclComm *comm_create(int rank, int n_ranks, const id_t_ *ids,
                                    int n_ids)
{
    struct ncclComm *comm = calloc(1, sizeof(*comm));

    comm->rank = rank;
    comm->n_ranks = n_ranks;
    comm->n_ids = n_ids;
    comm->ids = calloc((size_t)n_ids, sizeof(*ids));
    memcpy(comm->ids, ids, (size_t)n_ids * sizeof(*ids));
    comm->fd = -1;
    comm->last = &comm->first;
    set_state(comm, IN_PROGRESS);
    (void)pthread_mutex_init(&comm->mutex, NULL);
    (void)pthread_cond_init(&comm->news, NULL);
    return comm;
}

static int comm_start(struct ncclComm *comm)
{
    return pthread_create(&comm->thread, NULL, comm_run, comm) == 0
               ? OK
               : fail(SYSTEM_ERROR, "no thread");
}

/* --- the interface ----------------------------------------------------------
 */

int ncclGetVersion(int *version)
{
    *version = script_int(NCCL, "version", 22809);
    return OK;
}

const char *ncclGetErrorString(int result)
{
    static const char *const names[] = {
        "no error",
        "unhandled cuda error",
        "unhandled system error",
        "internal error",
        "invalid argument",
        "invalid usage",
        "remote process exited or there was a network error",
        "NCCL operation in progress",
    };

    return result >= 0 && result < 8 ? names[result] : "unknown result code";
}

const char *ncclGetLastError(struct ncclComm *comm)
{
    (void)comm;
    return last_error;
}

/* NCCL binds to an interface of this list of prefixes, or not at all. */
static bool has_interface(void)
{
    const char *wanted = getenv("NCCL_SOCKET_IFNAME");
    struct ifaddrs *list;
    struct ifaddrs *at;
    bool found = wanted == NULL;

    if (found || getifaddrs(&list) < 0) {
        return found;
    }
    for (at = list; at != NULL; at = at->ifa_next) {
        found = found || strncmp(at->ifa_name, wanted, strlen(wanted)) == 0;
    }
    freeifaddrs(list);
    return found;
}

int ncclGetUniqueId(id_t_ *id)
{
    char value[64];

    if (script_get(NCCL, "id", value)) {
        if (strcmp(value, "exit") == 0) {
            _exit(9);
        }
        while (strcmp(value, "never") == 0) {
            (void)sleep(1000);
        }
        return fail(atoi(value), "scripted to make no id");
    }
    if (!has_interface()) {
        return fail(INVALID_USAGE, "Bootstrap : no socket interface found");
    }
    return make_id(id);
}

static int init_any(struct ncclComm **comm, int n_ranks, const id_t_ *ids,
                    int n_ids, int rank, const config_t *config)
{
    const char *blocking = getenv("NCCL_COMM_BLOCKING");
    bool blocks = blocking != NULL ? strcmp(blocking, "1") == 0
                                   : config == NULL || config->blocking != 0;
    char value[64];

    if (config != NULL && config->magic != 0xcafebeef) {
        return fail(INVALID_ARGUMENT, "ncclConfig_t argument not initialized");
    }
    if (script_get(NCCL, "init", value) && strncmp(value, "now:", 4) == 0) {
        *comm = NULL;
        return fail(atoi(value + 4), "scripted to fail at once");
    }
    *comm = comm_create(rank, n_ranks, ids, n_ids);
    if (comm_start(*comm) != OK) {
        return SYSTEM_ERROR;
    }
    while (blocks && atomic_load(&(*comm)->state) == IN_PROGRESS) {
        (void)usleep(1000);
    }
    return atomic_load(&(*comm)->state);
}

int ncclCommInitRankConfig(struct ncclComm **comm, int n_ranks, id_t_ id,
                           int rank, config_t *config)
{
    return init_any(comm, n_ranks, &id, 1, rank, config);
}

int ncclCommInitRankScalable(struct ncclComm **comm, int n_ranks, int rank,
                             int n_ids, id_t_ *ids, config_t *config)
{
    return init_any(comm, n_ranks, ids, n_ids, rank, config);
}

int ncclCommInitRank(struct ncclComm **comm, int n_ranks, id_t_ id, int rank)
{
    return init_any(comm, n_ranks, &id, 1, rank, NULL);
}

int ncclCommGetAsyncError(struct ncclComm *comm, int *result)
{
    *result = atomic_load(&comm->state);
    return OK;
}

int ncclCommCount(const struct ncclComm *comm, int *count)
{
    *count = comm->n_ranks;
    return OK;
}

int ncclCommUserRank(const struct ncclComm *comm, int *rank)
{
    *rank = comm->rank;
    return OK;
}

static int enqueue(struct ncclComm *comm, struct task task)
{
    struct task *copy;
    int state = atomic_load(&comm->state);

    if (state != OK) {
        return state == IN_PROGRESS
                   ? fail(INVALID_ARGUMENT, "the communicator is not ready")
                   : state;
    }
    copy = malloc(sizeof(*copy));
    *copy = task;
    if (task.stream != NULL) {
        (void)pthread_mutex_lock(&task.stream->mutex);
        task.stream->n_pending++;
        (void)pthread_mutex_unlock(&task.stream->mutex);
    }
    if (task.split || task.header.op == OP_BYE) {
        set_state(comm, IN_PROGRESS);
    }
    (void)pthread_mutex_lock(&comm->mutex);
    copy->next = NULL;
    *comm->last = copy;
    comm->last = &copy->next;
    (void)pthread_cond_signal(&comm->news);
    (void)pthread_mutex_unlock(&comm->mutex);
    return task.split || task.header.op == OP_BYE ? IN_PROGRESS : OK;
}

static int collective(struct ncclComm *comm, enum op op, const void *in,
                      void *out, size_t count, int type, int reduction,
                      int root, struct CUstream_st *stream)
{
    struct task task = { .in = in, .out = out, .stream = stream };

    task.header = (struct header){ .op = (int32_t)op,
                                   .type = type,
                                   .reduction = reduction,
                                   .root = root,
                                   .count = count };
    return enqueue(comm, task);
}

int ncclAllReduce(const void *in, void *out, size_t count, int type, int op,
                  struct ncclComm *comm, struct CUstream_st *stream)
{
    char value[64];

    if (script_get(NCCL, "warmup", value)) {
        if (strcmp(value, "never") == 0) {
            (void)pthread_mutex_lock(&stream->mutex);
            stream->n_pending++;
            (void)pthread_mutex_unlock(&stream->mutex);
            return OK;
        }
        if (strcmp(value, "wrong") == 0) {
            return OK; /* nothing is summed */
        }
        return fail(atoi(value), "scripted to reduce nothing");
    }
    return collective(comm, OP_ALL_REDUCE, in, out, count, type, op, 0, stream);
}

int ncclBroadcast(const void *in, void *out, size_t count, int type, int root,
                  struct ncclComm *comm, struct CUstream_st *stream)
{
    return collective(comm, OP_BROADCAST, in, out, count, type, 0, root,
                      stream);
}

int ncclAllGather(const void *in, void *out, size_t count, int type,
                  struct ncclComm *comm, struct CUstream_st *stream)
{
    return collective(comm, OP_ALL_GATHER, in, out, count, type, 0, 0, stream);
}

int ncclCommSplit(struct ncclComm *comm, int color, int key,
                  struct ncclComm **new_comm, config_t *config)
{
    struct task task = {
        .split = true, .color = color, .key = key, .split_out = new_comm
    };

    (void)config;
    *new_comm = NULL;
    return enqueue(comm, task);
}

int ncclCommFinalize(struct ncclComm *comm)
{
    comm->finalized = true;
    return enqueue(comm, (struct task){ .header = { .op = OP_BYE } });
}

int ncclCommAbort(struct ncclComm *comm)
{
    char value[64];

    while (script_get(NCCL, "abort", value)) {
        (void)sleep(1000);
    }
    (void)pthread_mutex_lock(&comm->mutex);
    atomic_store(&comm->stop, true);
    (void)pthread_cond_signal(&comm->news);
    (void)pthread_mutex_unlock(&comm->mutex);
    (void)pthread_join(comm->thread, NULL);
    while (comm->first != NULL) {
        struct task *task = comm->first;

        comm->first = task->next;
        task_done(task);
    }
    if (comm->fd >= 0) {
        (void)close(comm->fd);
    }
    free(comm->ids);
    free(comm);
    return OK;
}

int ncclCommDestroy(struct ncclComm *comm)
{
    if (!comm->finalized) {
        (void)fprintf(stderr, "standin: destroyed without being finalised\n");
        abort();
    }
    return ncclCommAbort(comm);
}

int ncclGroupStart(void)
{
    return OK;
}

int ncclGroupEnd(void)
{
    return OK;
}
