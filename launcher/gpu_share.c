#include "launcher/gpu_share.h"

#include "common/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The next entry of the list: 0, -EINVAL at its end, or -ENOMEM. */
static int take_next(const char **cursor, char **gpu_out)
{
    const char *item;
    size_t len;

    if (!parse_list_next(cursor, &item, &len)) {
        return -EINVAL;
    }
    *gpu_out = strndup(item, len);
    return *gpu_out != NULL ? 0 : -ENOMEM;
}

int gpu_share_make(const char *visible, uint32_t n_workers, char ***gpus_out,
                   struct err *err)
{
    char **gpus = calloc(n_workers, sizeof(*gpus));
    const char *cursor = visible;
    int rc = gpus != NULL ? 0 : -ENOMEM;
    uint32_t i;

    for (i = 0; i < n_workers && rc == 0; i++) {
        if (visible != NULL) {
            rc = take_next(&cursor, &gpus[i]);
        } else if (asprintf(&gpus[i], "%u", i) < 0) {
            gpus[i] = NULL;
            rc = -ENOMEM;
        }
    }
    if (rc == 0) {
        *gpus_out = gpus;
        return 0;
    }
    gpu_share_destroy(gpus, n_workers);
    if (rc == -ENOMEM) {
        return err_sys(err, rc, "--virtual-local-rank");
    }
    return err_set(err, rc,
                   "--virtual-local-rank: CUDA_VISIBLE_DEVICES=%.64s is too "
                   "short for %u workers",
                   visible, n_workers);
}

void gpu_share_destroy(char **gpus, uint32_t n_workers)
{
    uint32_t i;

    for (i = 0; gpus != NULL && i < n_workers; i++) {
        free(gpus[i]);
    }
    free(gpus);
}
