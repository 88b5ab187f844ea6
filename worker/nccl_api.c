#include "worker/nccl_api.h"

#include "common/dynlib.h"
#include "worker/fail.h"

#include <errno.h>
#include <limits.h>

static const char *const library_names[] = { "libnccl.so.2", "libnccl.so",
                                             NULL };

/* NCCL_CONFIG_MAGIC, and what its initializer gives every field. */
#define CONFIG_MAGIC 0xcafebeefU
#define CONFIG_UNDEFINED INT_MIN

struct nccl_config nccl_config_non_blocking(void)
{
    return (struct nccl_config){
        .size = offsetof(struct nccl_config, split_share) + sizeof(int),
        .magic = CONFIG_MAGIC,
        .version = NCCL_VERSION_MIN,
        .blocking = 0,
        .cga_cluster_size = CONFIG_UNDEFINED,
        .min_ctas = CONFIG_UNDEFINED,
        .max_ctas = CONFIG_UNDEFINED,
        .net_name = NULL,
        .split_share = CONFIG_UNDEFINED,
    };
}

static int check_version(const struct nccl_api *api,
                         struct flaunch_error *error)
{
    char path[512];
    int version = 0;

    if (api->get_version(&version) == NCCL_OK && version >= NCCL_VERSION_MIN) {
        return 0;
    }
    dynlib_path((void *const *)&api->get_version, path, sizeof(path));
    return fail_set(error, FLAUNCH_NCCL, -ENOENT,
                    "NCCL %d (%s) is too old: 2.18 or later is needed", version,
                    path);
}

int nccl_api_load(struct nccl_api *api_out, struct flaunch_error *error)
{
    struct nccl_api api = { 0 };
    const struct dynlib_symbol symbols[] = {
#define ROW(member, symbol) { #symbol, (void **)&api.member, false },
        NCCL_API_ROWS(ROW)
#undef ROW
            { "ncclGetUniqueId", (void **)&api.get_unique_id, false },
        { "ncclCommInitRankConfig", (void **)&api.comm_init_rank_config,
          false },
        { "ncclGetLastError", (void **)&api.get_last_error, true },
        { "ncclCommSplit", (void **)&api.comm_split, true },
        { "ncclCommInitRankScalable", (void **)&api.comm_init_rank_scalable,
          true },
        { NULL, NULL, false },
    };
    char why[256];
    int rc;

    rc = dynlib_load(library_names, symbols, &api.library, why, sizeof(why));
    if (rc < 0) {
        return fail_set(error, FLAUNCH_NCCL, rc,
                        "NCCL cannot be used (%s); install NCCL 2.18 or later, "
                        "or put its directory into LD_LIBRARY_PATH",
                        why);
    }
    rc = check_version(&api, error);
    if (rc == 0) {
        *api_out = api;
    }
    return rc;
}
