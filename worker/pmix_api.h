/*
 * PMIx, loaded at run time: the types and functions we use. Where the real
 * header is installed, worker/pmix_check.c has the compiler compare them.
 * Source: the PMIx standard, 3 and later; pmix.h of OpenPMIx 4.2.
 */
#ifndef FLAUNCH_WORKER_PMIX_API_H
#define FLAUNCH_WORKER_PMIX_API_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PMIX_API_OK 0
#define PMIX_API_NSPACE_MAX 255
#define PMIX_API_KEY_MAX 511
#define PMIX_API_RANK_WILDCARD (UINT32_MAX - 1)
#define PMIX_API_GLOBAL 3

enum pmix_api_type {
    PMIX_API_BOOL = 1,
    PMIX_API_STRING = 3,
    PMIX_API_SIZE = 4,
    PMIX_API_INT = 6,
    PMIX_API_INT32 = 9,
    PMIX_API_UINT = 11,
    PMIX_API_UINT16 = 13,
    PMIX_API_UINT32 = 14,
    PMIX_API_UINT64 = 15,
};

#define PMIX_API_JOB_SIZE "pmix.job.size"
#define PMIX_API_LOCAL_SIZE "pmix.local.size"
#define PMIX_API_LOCAL_RANK "pmix.lrank"
#define PMIX_API_COLLECT "pmix.collect"

struct pmix_api_proc {
    char nspace[PMIX_API_NSPACE_MAX + 1];
    uint32_t rank;
};

struct pmix_api_value {
    uint16_t type;
    union {
        bool flag;
        char *string;
        size_t size;
        int integer;
        int32_t int32;
        unsigned unsigned_integer;
        uint16_t uint16;
        uint32_t uint32;
        uint64_t uint64;
        void *room[3]; /* the widest member has three pointers */
    } data;
};

struct pmix_api_info {
    char key[PMIX_API_KEY_MAX + 1];
    uint32_t flags;
    struct pmix_api_value value;
};

struct pmix_api {
    void *library;
    int (*init)(struct pmix_api_proc *self, struct pmix_api_info *info,
                size_t n_info);
    int (*finalize)(const struct pmix_api_info *info, size_t n_info);
    int (*put)(uint8_t scope, const char *key, struct pmix_api_value *value);
    int (*commit)(void);
    int (*fence)(const struct pmix_api_proc *procs, size_t n_procs,
                 const struct pmix_api_info *info, size_t n_info);
    int (*get)(const struct pmix_api_proc *proc, const char *key,
               const struct pmix_api_info *info, size_t n_info,
               struct pmix_api_value **value_out);
    const char *(*error_string)(int status);
};

/* Load libpmix: 0, or -ENOENT with a sentence that says what to install. */
int pmix_api_load(struct pmix_api *api_out, struct err *err);

#endif
