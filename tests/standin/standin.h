/*
 * What the stand-ins for the CUDA runtime and for NCCL share: a stream as a
 * count of what is still to be done, and scripts.
 *
 * They work, on host memory: device memory is malloc, ranks meet over TCP
 * through the address in the unique id, sums are computed. Scripts make them
 * fail as the real ones do:
 *
 *     STANDIN_CUDA=count=N,count_error=N,set_error=N,driver=N,hang,none,uuid=X,
 *                  only_own
 *     STANDIN_NCCL=version=N,id=exit|never|N,init=never|now:N|later:N,
 *                  warmup=never|wrong|N,abort=never,no_split,no_scalable
 */
#ifndef FLAUNCH_TESTS_STANDIN_STANDIN_H
#define FLAUNCH_TESTS_STANDIN_STANDIN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUstream_st {
    pthread_mutex_t mutex;
    pthread_cond_t idle;
    int n_pending;
};

/* The value behind name in a script, up to its comma; whether it is there. */
static inline bool script_get(const char *script, const char *name,
                              char value[64])
{
    const char *at = getenv(script);
    size_t len = strlen(name);

    value[0] = '\0';
    while (at != NULL && *at != '\0') {
        size_t item = strcspn(at, ",");

        if (strncmp(at, name, len) == 0 && (item == len || at[len] == '=')) {
            if (item > len) {
                (void)snprintf(value, 64, "%.*s", (int)(item - len - 1),
                               at + len + 1);
            }
            return true;
        }
        at += item;
        at += *at == ',';
    }
    return false;
}

static inline int script_int(const char *script, const char *name, int fallback)
{
    char value[64];

    return script_get(script, name, value) ? atoi(value) : fallback;
}

#endif
