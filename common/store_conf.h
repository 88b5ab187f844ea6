/*
 * What a store is told before it serves: its limits, and which old clients to
 * expect. All limits are inclusive.
 */
#ifndef FLAUNCH_COMMON_STORE_CONF_H
#define FLAUNCH_COMMON_STORE_CONF_H

#include <stddef.h>
#include <stdint.h>

/*
 * The clients before PyTorch 2.2 say no hello, and their numbers for some
 * requests clash: 7 is WATCH_KEY in 1.13 and DELETE_KEY in 2.1, 8 is DELETE_KEY
 * and APPEND. flaunch-store(7) says how STORE_LEGACY_AUTO tells them apart.
 */
enum store_legacy {
    STORE_LEGACY_AUTO,
    STORE_LEGACY_1_13, /* 1.9 to 2.0 */
    STORE_LEGACY_2_1,
};

struct store_conf {
    uint32_t max_connections;
    uint64_t max_keys;
    size_t max_key_bytes;
    size_t max_value_bytes; /* in one request; APPEND can make longer ones */
    /*
     * Keys, values, queues, waits, requests that are not whole yet, and
     * replies that are not read yet, all together.
     */
    uint64_t max_memory;
    enum store_legacy legacy;
};

/* Limits of one request are those of PyTorch's libuv server. */
#define STORE_KEY_MAX 8192
#define STORE_VALUE_MAX ((size_t)8 * 1024 * 1024)
#define STORE_CONNECTIONS_MAX 100000
#define STORE_N_KEYS_MAX 10000000
#define STORE_MEMORY_MAX ((uint64_t)1024 * 1024 * 1024)

#define STORE_CONF_DEFAULT                                                     \
    {                                                                          \
        .max_connections = STORE_CONNECTIONS_MAX,                              \
        .max_keys = STORE_N_KEYS_MAX, .max_key_bytes = STORE_KEY_MAX,          \
        .max_value_bytes = STORE_VALUE_MAX, .max_memory = STORE_MEMORY_MAX,    \
        .legacy = STORE_LEGACY_AUTO                                            \
    }

#endif
