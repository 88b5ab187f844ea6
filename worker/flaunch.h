/*
 * libflaunch: one call that makes a process a rank of its job.
 *
 *     struct flaunch_error error;
 *     struct flaunch *job;
 *
 *     if (flaunch_init(&job, NULL, &error) < 0) {
 *         fprintf(stderr, "%s\n", error.text);
 *         return 1;
 *     }
 *     flaunch_all_reduce(job, x, n, FLAUNCH_FLOAT, FLAUNCH_SUM, &error);
 *     flaunch_finalize(job);
 *
 * The library never exits, installs no signal handler, and prints nothing
 * unless FLAUNCH_DEBUG asks. Every function that returns int returns 0 or a
 * negative errno; with an error argument, which may be NULL, it also writes a
 * sentence that a person can act on. A struct flaunch may be used by one
 * thread at a time.
 */
#ifndef FLAUNCH_H
#define FLAUNCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One process's place in a job; opaque. */
struct flaunch;

/* Who found the error. */
enum flaunch_domain {
    FLAUNCH_OK = 0,
    FLAUNCH_USAGE,       /* an argument is wrong */
    FLAUNCH_ENVIRONMENT, /* the launcher's variables are incomplete or clash */
    FLAUNCH_SYSTEM,      /* the operating system */
    FLAUNCH_STORE,       /* the store: not reachable, or it went away */
    FLAUNCH_CHECKIN,     /* ranks are missing, or do not fit together */
    FLAUNCH_CUDA,        /* the CUDA runtime or its driver */
    FLAUNCH_NCCL,        /* NCCL */
    FLAUNCH_GLOO,        /* gloo */
};

struct flaunch_error {
    enum flaunch_domain domain;
    int code; /* a negative errno, or the library's own code */
    char text[1024];
};

/*
 * What flaunch_init is to do. Use FLAUNCH_OPTIONS_INIT; or set all to 0, then
 * size to sizeof. 0 and NULL ask for the default. A library that is newer than
 * the header a program was built with takes the shorter struct.
 */
struct flaunch_options {
    size_t size;
    /*
     * "none": only ranks and device; "gloo": collectives on host memory;
     * "nccl": a communicator; "auto": nccl where there is a GPU, else gloo. The
     * default is "none".
     */
    const char *dist_backend;
    /*
     * Whom to believe, such as "slurm" (names: libflaunch(3)); "none": a job of
     * one; NULL: find out. FLAUNCH_LAUNCHER in the environment counts where
     * this is NULL.
     */
    const char *launcher;
    /* Milliseconds for all of flaunch_init together; 0:
     * FLAUNCH_INIT_TIMEOUT (seconds), else 300,000. */
    uint64_t timeout_ms;
    /* A CUDA device to use + 1; 0: choose by local rank. */
    int device_plus_1;
    /* Use device 0 whatever the local rank (open_flamingo's option). */
    int no_set_device_rank;
    /*
     * Where the ranks meet: "tcp://HOST:PORT", where rank 0 serves the store,
     * or "file:///PATH", a file that all see, as PyTorch's; NULL or "env://":
     * as the launcher has it.
     */
    const char *dist_url;
    /* Only Horovod's or an MPI launcher's record will do (open_flamingo's
     * option). */
    int horovod;
};

#define FLAUNCH_OPTIONS_INIT                                                   \
    {                                                                          \
        sizeof(struct flaunch_options), NULL, NULL, 0, 0, 0, NULL, 0           \
    }

/*
 * Find out who started this process, meet the other ranks, check that all are
 * there and fit together, choose the device, open the backend.
 *
 * job_out  set on success only; end it with flaunch_finalize
 * options  NULL: all defaults
 *
 * All ranks of the job must call it, each on any one thread. With one rank and
 * no launcher it makes a job of one. A rank that fails tells the others, so
 * that all return the same sentence. Errors: -EINVAL (options, environment),
 * -ETIMEDOUT and -EHOSTDOWN (who is missing or does not fit is in the text),
 * -ENODEV, -ENOENT (a library is not installed), -ECONNREFUSED and other errnos
 * of sockets, -EIO (NCCL), -EDEADLK (NCCL does not come back even from its
 * abort, which may take 10 s beyond the limit: end the process with _exit),
 * -ENOMEM.
 */
int flaunch_init(struct flaunch **job_out,
                 const struct flaunch_options *options,
                 struct flaunch_error *error);

/*
 * Leave the job and free it; job may be NULL. Waits for nobody, except that
 * each communicator of NCCL gets up to 10 s to be finalised by all and 10 s to
 * be aborted. In a forked child it ends nothing of its parent's.
 */
void flaunch_finalize(struct flaunch *job);

/* Number among all ranks, and how many there are. */
int flaunch_rank(const struct flaunch *job);
int flaunch_world_size(const struct flaunch *job);

/* The same among the ranks of this node. */
int flaunch_local_rank(const struct flaunch *job);
int flaunch_local_world_size(const struct flaunch *job);

/* Whether a launcher started this process (also with one rank). */
int flaunch_distributed(const struct flaunch *job);

/* "cpu" or "cuda:N"; and N, or -1 for the CPU. Lives as long as job. */
const char *flaunch_device(const struct flaunch *job);
int flaunch_device_index(const struct flaunch *job);

/* The backend and the launcher that were chosen; live as long as job. */
const char *flaunch_backend(const struct flaunch *job);
const char *flaunch_launcher(const struct flaunch *job);

/* What was found in the environment, what was chosen, and why: some lines of
 * text. Lives as long as job. */
const char *flaunch_explain(const struct flaunch *job);

enum flaunch_type {
    FLAUNCH_FLOAT,
    FLAUNCH_DOUBLE,
    FLAUNCH_INT32,
    FLAUNCH_INT64,
};

enum flaunch_op {
    FLAUNCH_SUM,
    FLAUNCH_MIN,
    FLAUNCH_MAX,
    FLAUNCH_PRODUCT,
};

/*
 * Collectives on host memory, with the backend "gloo". All ranks must make the
 * same calls in the same order with the same count, type, op and root. count
 * counts elements; 0 is allowed. Each fails with -ETIMEDOUT or -EIO when a
 * peer is gone, and the job is then of no more use; with another backend it
 * fails with -ENOTSUP. Where ranks pass different counts gloo ends the process;
 * with FLAUNCH_DEBUG=detail each call compares first, and fails with -EINVAL.
 */

/* data[0..count) of all ranks combined, in place, on every rank. */
int flaunch_all_reduce(struct flaunch *job, void *data, size_t count,
                       enum flaunch_type type, enum flaunch_op op,
                       struct flaunch_error *error);

/* root's data[0..count) to every rank. */
int flaunch_broadcast(struct flaunch *job, void *data, size_t count,
                      enum flaunch_type type, int root,
                      struct flaunch_error *error);

/*
 * Every rank's in[0..count), in order of rank, to every rank:
 * out[0..count * world_size). in and out must not overlap.
 */
int flaunch_all_gather(struct flaunch *job, const void *in, void *out,
                       size_t count, enum flaunch_type type,
                       struct flaunch_error *error);

/* Return when every rank has called it. */
int flaunch_barrier(struct flaunch *job, struct flaunch_error *error);

/*
 * With the backend "nccl".
 *
 * All communicators were made non-blocking: a call of NCCL may return
 * ncclInProgress, and flaunch_comm_wait then waits for it. They belong to the
 * job; flaunch_finalize ends them, finalised where all is well, aborted where
 * something failed.
 */

/* The ncclComm_t over all ranks, on flaunch_device_index(job), which is the
 * calling thread's current device; NULL with another backend. */
void *flaunch_nccl_comm(const struct flaunch *job);

/*
 * A part of that communicator: the ranks that give the same color, ordered by
 * key, then by rank. All ranks must call it.
 *
 * color       0 or more; -1: this rank is in no part, *comm_out gets NULL
 * timeout_ms  0: 300,000
 *
 * Errors: -ENOTSUP (another backend, an NCCL before 2.18), -EIO, -ETIMEDOUT,
 * after which the job is of no more use.
 */
int flaunch_comm_split(struct flaunch *job, int color, int key,
                       uint64_t timeout_ms, void **comm_out,
                       struct flaunch_error *error);

/* Wait until comm, the job's or a part, has no call in progress. 0, or -EIO
 * with NCCL's error, -ETIMEDOUT. timeout_ms as above. */
int flaunch_comm_wait(struct flaunch *job, void *comm, uint64_t timeout_ms,
                      struct flaunch_error *error);

/*
 * A client of a store: flaunch's, torchrun's, or any TCPStore of PyTorch.
 *
 * It needs no job: programs may meet at a store as they like. Keys are strings
 * of up to 8,191 bytes, and are PyTorch's: what one client of either kind has
 * set, all see. Values are bytes, up to 8 MiB where they are set.
 *
 * Each call takes a deadline, which flaunch_deadline makes, and returns by
 * then; where the server has stopped answering as well, up to 5 s later. A call
 * that fails with -ETIMEDOUT because of what other clients have not done leaves
 * the client usable; one that got no answer, or a wrong one, closes the
 * connection, and all calls after it fail with -ENOTCONN. -ENOTSUP: the server
 * does not know the request, see each. The sentence of an error names host,
 * port, key, and how long it took. A client may be used by one thread at a
 * time.
 */
struct flaunch_store;

/* Milliseconds of a clock that never jumps: timeout_ms from now. */
uint64_t flaunch_deadline(uint64_t timeout_ms);

/*
 * Connect, trying again and again until the deadline while nobody is there.
 *
 * host, port  NULL and 0: the job's, from FLAUNCH_STORE, else MASTER_ADDR and
 *             MASTER_PORT
 * release     of the server: "2.2" (and later; also NULL), "2.1", "1.13" (1.9
 *             to 2.0), or "auto"; that costs 2 s where it is older than 2.2,
 *             and its other clients wait meanwhile
 *
 * store_out is the caller's, for flaunch_store_close. Errors: -EINVAL, -EPROTO
 * (no such store listens there), -ETIMEDOUT, -ENOMEM.
 */
int flaunch_store_connect(struct flaunch_store **store_out, const char *host,
                          int port, const char *release, uint64_t deadline,
                          struct flaunch_error *error);

/* store may be NULL. */
void flaunch_store_close(struct flaunch_store *store);

/* Set a key; returns when it is sent. */
int flaunch_store_set(struct flaunch_store *store, const char *key,
                      const void *value, size_t len, uint64_t deadline,
                      struct flaunch_error *error);

/* The value of a key, which is waited for: *value_out is for free(3), and has
 * a NUL behind its len bytes. One round trip where the key is there. */
int flaunch_store_get(struct flaunch_store *store, const char *key,
                      void **value_out, size_t *len_out, uint64_t deadline,
                      struct flaunch_error *error);

/* Add delta to a decimal counter, from 0 where the key is missing; sum_out may
 * be NULL. A value that is no number closes the connection. */
int flaunch_store_add(struct flaunch_store *store, const char *key,
                      int64_t delta, int64_t *sum_out, uint64_t deadline,
                      struct flaunch_error *error);

/*
 * Set key to desired if it holds expected, or is missing and expected is empty.
 * *value_out, as of flaunch_store_get, is the value afterwards; expected where
 * the key is missing and stays so.
 */
int flaunch_store_compare_set(struct flaunch_store *store, const char *key,
                              const void *expected, size_t expected_len,
                              const void *desired, size_t desired_len,
                              void **value_out, size_t *len_out,
                              uint64_t deadline, struct flaunch_error *error);

/* Extend a value, or create it. Not of servers before 2.1. */
int flaunch_store_append(struct flaunch_store *store, const char *key,
                         const void *suffix, size_t len, uint64_t deadline,
                         struct flaunch_error *error);

/* Wait until all of n keys (up to 1,024) exist. */
int flaunch_store_wait(struct flaunch_store *store, const char *const *keys,
                       size_t n, uint64_t deadline,
                       struct flaunch_error *error);

/* Whether all of n keys exist now. */
int flaunch_store_check(struct flaunch_store *store, const char *const *keys,
                        size_t n, int *all_out, uint64_t deadline,
                        struct flaunch_error *error);

/* Remove a key; existed_out may be NULL. */
int flaunch_store_delete(struct flaunch_store *store, const char *key,
                         int *existed_out, uint64_t deadline,
                         struct flaunch_error *error);

/* A round trip, to see that the server answers. Of servers since 2.5. */
int flaunch_store_ping(struct flaunch_store *store, uint64_t deadline,
                       struct flaunch_error *error);

/* How many keys there are, of all clients; PyTorch's own init/ counts. */
int flaunch_store_num_keys(struct flaunch_store *store, int64_t *n_out,
                           uint64_t deadline, struct flaunch_error *error);

/* All keys, in no order: one free(3) of *keys_out frees array and strings. Of
 * servers since 2.10. */
int flaunch_store_list_keys(struct flaunch_store *store, char ***keys_out,
                            size_t *n_out, uint64_t deadline,
                            struct flaunch_error *error);

struct flaunch_bytes {
    void *data;
    size_t len;
};

/* Set n keys at once; get n (up to 1,024), each waited for, values_out as of
 * flaunch_store_get. Not of servers before 2.1. */
int flaunch_store_multi_set(struct flaunch_store *store,
                            const char *const *keys,
                            const struct flaunch_bytes *values, size_t n,
                            uint64_t deadline, struct flaunch_error *error);
int flaunch_store_multi_get(struct flaunch_store *store,
                            const char *const *keys, size_t n,
                            struct flaunch_bytes *values_out, uint64_t deadline,
                            struct flaunch_error *error);

/*
 * Queues, first in, first out, beside the keys. Pop waits for an element where
 * wait is not 0; -ENODATA: there is none, or another client took it. Of
 * PyTorch's servers since 2.8 with the libuv backend.
 */
int flaunch_store_queue_push(struct flaunch_store *store, const char *queue,
                             const void *value, size_t len, uint64_t deadline,
                             struct flaunch_error *error);
int flaunch_store_queue_pop(struct flaunch_store *store, const char *queue,
                            int wait, void **value_out, size_t *len_out,
                            uint64_t deadline, struct flaunch_error *error);
int flaunch_store_queue_len(struct flaunch_store *store, const char *queue,
                            int64_t *n_out, uint64_t deadline,
                            struct flaunch_error *error);

/* Wait until world_size clients have come to a barrier. A key serves once. */
int flaunch_store_barrier(struct flaunch_store *store, const char *key,
                          int64_t world_size, uint64_t deadline,
                          struct flaunch_error *error);

/*
 * Leave message, whose first line should say it all, for the report of the
 * launcher: written to the file that TORCHELASTIC_ERROR_FILE names, as
 * PyTorch's
 * @record does. Exit with a code other than 0 afterwards. Needs no job. Errors:
 * -ENOENT where no launcher asks for it, or what the file system says.
 */
int flaunch_report_error(const char *message, struct flaunch_error *error);

/* "0.1.0" */
const char *flaunch_version(void);

#ifdef __cplusplus
}
#endif

#endif
