/*
 * PMI-1, as a client: hydra, Slurm's pmi2 plugin, Flux and others serve it on a
 * socket inherited as PMI_FD, or at PMI_PORT after a handshake. One request is
 * in flight at a time.
 */
#include "worker/meet.h"

#include "common/clock.h"
#include "common/parse.h"
#include "worker/pmi_wire.h"
#include "worker/sock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct pmi {
    int fd;
    bool inherited;
    bool greeted; /* then finalize, or the others are killed */
    char space[256];
    char line[PMI_LINE_MAX]; /* the newest answer */
};

static int failed(const struct pmi *pmi, int rc, const char *doing,
                  struct err *err)
{
    if (rc == -EPROTO || rc == -ENOENT) {
        return err_set(err, rc, "PMI: %s: the server answered \"%.200s\"",
                       doing, pmi->line);
    }
    return err_sys(err, rc, "PMI: %s", doing);
}

/* One line without its end; byte by byte, since nothing may be read ahead: the
 * socket outlives us. */
static int read_line(struct pmi *pmi, uint64_t deadline_ms)
{
    size_t len = 0;

    for (;;) {
        int rc = sock_receive(pmi->fd, pmi->line + len, 1, deadline_ms);

        if (rc < 0 || pmi->line[len] == '\n') {
            pmi->line[len] = '\0';
            return rc;
        }
        if (++len == sizeof(pmi->line)) {
            pmi->line[len - 1] = '\0';
            return -EPROTO;
        }
    }
}

static int request(struct pmi *pmi, uint64_t deadline_ms, const char *answer,
                   struct err *err, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Send one line and read its answer. */
static int request(struct pmi *pmi, uint64_t deadline_ms, const char *answer,
                   struct err *err, const char *format, ...)
{
    char text[PMI_LINE_MAX];
    va_list args;
    int len;
    int rc;

    va_start(args, format);
    len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof(text)) {
        return err_set(err, -EMSGSIZE, "PMI: a request is too long");
    }
    pmi->line[0] = '\0';
    rc = sock_send(pmi->fd, text, (size_t)len, deadline_ms);
    if (rc == 0) {
        rc = read_line(pmi, deadline_ms);
    }
    if (rc == 0) {
        rc = pmi_answer(pmi->line, answer);
    }
    text[strcspn(text, " \n")] = '\0';
    return rc < 0 ? failed(pmi, rc, text, err) : 0;
}

static int pmi_put(struct meet *meet, const char *key, const char *value,
                   uint64_t deadline_ms, struct err *err)
{
    struct pmi *pmi = meet->state;

    return request(pmi, deadline_ms, "put_result", err,
                   "cmd=put kvsname=%s key=%s value=%s\n", pmi->space, key,
                   value);
}

static int pmi_fence(struct meet *meet, uint64_t deadline_ms, struct err *err)
{
    int rc = request(meet->state, deadline_ms, "barrier_out", err,
                     "cmd=barrier_in\n");

    return rc == -ETIMEDOUT
               ? err_set(err, rc, "PMI: not all ranks came to the barrier")
               : rc;
}

static int pmi_get(struct meet *meet, const char *key, char *value_out,
                   size_t size, uint64_t deadline_ms, struct err *err)
{
    struct pmi *pmi = meet->state;
    int rc = request(pmi, deadline_ms, "get_result", err,
                     "cmd=get kvsname=%s key=%s\n", pmi->space, key);

    if (rc == 0 && !pmi_field(pmi->line, "value", value_out, size)) {
        rc = failed(pmi, -EPROTO, "get", err);
    }
    return rc;
}

static void pmi_close(struct meet *meet, uint64_t deadline_ms)
{
    struct pmi *pmi = meet->state;

    if (pmi->greeted) {
        (void)request(pmi, deadline_ms, "finalize_ack", NULL, "cmd=finalize\n");
    }
    if (pmi->inherited) {
        /* It stays open, dead: whoever reads PMI_FD later must not find
         * another socket under that number. */
        (void)shutdown(pmi->fd, SHUT_RDWR);
    } else if (pmi->fd >= 0) {
        (void)close(pmi->fd);
    }
    free(pmi);
}

static const struct meet_ops pmi_ops = { pmi_put, pmi_fence, pmi_get,
                                         pmi_close };

/* Whether an MPI library of this process speaks on the socket already. */
static bool mpi_is_there(void)
{
    int (*initialized)(int *);
    int flag = 0;

    *(void **)&initialized = dlsym(RTLD_DEFAULT, "MPI_Initialized");
    return initialized != NULL && initialized(&flag) == 0 && flag != 0;
}

/* PMI_PORT: connect, name ourselves, be told rank and size. */
static int connect_port(struct pmi *pmi, const char *place,
                        struct detected *detected, uint64_t deadline_ms,
                        struct err *err)
{
    char host[256];
    uint16_t port;
    int n;
    int rc;

    if (parse_host_port(place, host, sizeof(host), &port) < 0) {
        return err_set(err, -EINVAL, "PMI_PORT=%.200s is no HOST:PORT", place);
    }
    pmi->fd = sock_connect_host(host, port, deadline_ms, "PMI_PORT", err);
    if (pmi->fd < 0) {
        return pmi->fd;
    }
    rc = request(pmi, deadline_ms, "initack", err, "cmd=initack pmiid=%.16s\n",
                 getenv("PMI_ID"));
    for (n = 0; n < 3 && rc == 0; n++) {
        rc = read_line(pmi, deadline_ms);
        if (rc == 0) {
            rc = pmi_answer(pmi->line, "set");
        }
        (void)pmi_number(pmi->line, "size", &detected->world_size);
        (void)pmi_number(pmi->line, "rank", &detected->rank);
        if (rc < 0) {
            rc = failed(pmi, rc, "initack", err);
        }
    }
    return rc;
}

/* What the environment left open, from the mapping where there is one. */
static int fill_in(struct meet *meet, struct detected *detected,
                   uint64_t deadline_ms, struct err *err)
{
    struct pmi *pmi = meet->state;
    char mapping[1024];
    int local_rank;
    int local_world_size;

    if (detected->world_size == 0 &&
        (request(pmi, deadline_ms, "universe_size", err,
                 "cmd=get_universe_size\n") < 0 ||
         !pmi_number(pmi->line, "size", &detected->world_size))) {
        return failed(pmi, -EPROTO, "get_universe_size", err);
    }
    if (detected->rank < 0 || detected->rank >= detected->world_size) {
        return err_set(err, -EINVAL, "PMI: rank %d of %d", detected->rank,
                       detected->world_size);
    }
    if (detected->local_rank >= 0 && detected->local_world_size > 0) {
        return 0;
    }
    if (pmi_get(meet, "PMI_process_mapping", mapping, sizeof(mapping),
                deadline_ms, NULL) == 0 &&
        pmi_mapping_read(mapping, detected->rank, &local_rank,
                         &local_world_size) == 0) {
        detected->local_rank = local_rank;
        detected->local_world_size = local_world_size;
    }
    return 0;
}

static int greet(struct meet *meet, struct detected *detected,
                 uint64_t deadline_ms, struct err *err)
{
    struct pmi *pmi = meet->state;
    int rc = request(pmi, deadline_ms, "response_to_init", err,
                     "cmd=init pmi_version=1 pmi_subversion=1\n");

    if (rc == -EPIPE || rc == -ECONNRESET) {
        return err_set(err, rc,
                       "PMI has ended: it serves one flaunch_init, or one "
                       "MPI_Init, in each process");
    }
    if (rc < 0) {
        return rc;
    }
    pmi->greeted = true;
    rc = request(pmi, deadline_ms, "my_kvsname", err, "cmd=get_my_kvsname\n");
    if (rc == 0 &&
        !pmi_field(pmi->line, "kvsname", pmi->space, sizeof(pmi->space))) {
        rc = failed(pmi, -EPROTO, "get_my_kvsname", err);
    }
    return rc < 0 ? rc : fill_in(meet, detected, deadline_ms, err);
}

int meet_pmi_open(struct meet *meet, struct detected *detected,
                  uint64_t deadline_ms, struct err *err)
{
    const char *inherited = getenv("PMI_FD");
    const char *place = getenv("PMI_PORT");
    struct pmi *pmi;
    int64_t fd = -1;
    int rc = 0;

    if (mpi_is_there()) {
        return err_set(err, -EALREADY,
                       "MPI is initialised already and PMI is its own now: "
                       "call flaunch_init before MPI_Init, or give a dist_url");
    }
    pmi = calloc(1, sizeof(*pmi));
    if (pmi == NULL) {
        return err_sys(err, -ENOMEM, "PMI");
    }
    if (inherited != NULL && parse_int(inherited, 0, INT32_MAX, &fd) == 0) {
        pmi->fd = (int)fd;
        pmi->inherited = true;
        (void)fcntl(pmi->fd, F_SETFD, FD_CLOEXEC);
    } else {
        pmi->fd = -1;
        rc = connect_port(pmi, place != NULL ? place : "", detected,
                          deadline_ms, err);
    }
    *meet = (struct meet){ .ops = &pmi_ops, .state = pmi };
    if (rc == 0) {
        rc = greet(meet, detected, deadline_ms, err);
    }
    if (rc < 0) {
        meet_close(meet, deadline_ms);
    }
    return rc;
}
