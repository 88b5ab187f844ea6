/*
 * --rdzv-conf: torchrun's "key=value,..." as far as it means something here.
 */
#ifndef FLAUNCH_LAUNCHER_RDZV_CONF_H
#define FLAUNCH_LAUNCHER_RDZV_CONF_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RDZV_IS_HOST_UNSET (-1)

struct rdzv_conf {
    uint64_t join_ms;      /* 0: not given */
    uint64_t last_call_ms; /* 0: not given */
    uint64_t lease_ms;     /* 0: not given */
    int is_host;           /* RDZV_IS_HOST_UNSET: not given */
    bool by_file;          /* store_type=file */
    char unknown[128];     /* "key, key" */
};

/* 0 or -EINVAL with a sentence. text may be NULL: nothing is given. */
int rdzv_conf_parse(const char *text, struct rdzv_conf *conf_out,
                    struct err *err);

#endif
