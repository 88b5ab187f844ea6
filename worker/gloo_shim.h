/*
 * gloo behind a C interface, in a shared object of its own that is loaded
 * when the backend is asked for. No exception crosses it.
 */
#ifndef FLAUNCH_WORKER_GLOO_SHIM_H
#define FLAUNCH_WORKER_GLOO_SHIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever anything here changes its meaning. */
#define GLOO_SHIM_ABI 1

/* The store gloo meets in; each returns 0 or a negative errno. */
struct gloo_kv {
    int (*set)(void *arg, const char *key, const void *data, size_t len);
    /* data_out: to be freed by free() */
    int (*get)(void *arg, const char *key, uint64_t timeout_ms, void **data_out,
               size_t *len_out);
    int (*wait)(void *arg, const char *key, uint64_t timeout_ms);
    void *arg;
};

struct gloo_request {
    int rank;
    int world_size;
    const char *address;    /* numeric, of this host: where peers reach us */
    uint64_t open_ms;       /* for connecting to all peers */
    uint64_t collective_ms; /* for one collective */
};

/* Numbers as in enum flaunch_type and enum flaunch_op. */
struct gloo_shim {
    unsigned abi;
    /* All return 0 or a negative errno with gloo's words in why. */
    int (*open)(void **group_out, const struct gloo_request *request,
                const struct gloo_kv *kv, char *why, size_t why_size);
    int (*all_reduce)(void *group, void *data, size_t count, int type, int op,
                      char *why, size_t why_size);
    int (*broadcast)(void *group, void *data, size_t count, int type, int root,
                     char *why, size_t why_size);
    int (*all_gather)(void *group, const void *in, void *out, size_t count,
                      int type, char *why, size_t why_size);
    int (*barrier)(void *group, char *why, size_t why_size);
    void (*close)(void *group);
};

/* The one symbol of libflaunch_gloo.so. */
const struct gloo_shim *flaunch_gloo_shim(void);

#ifdef __cplusplus
}
#endif

#endif
