/*
 * Has the compiler compare worker/nccl_api.h with the real header; built only
 * where that is installed. Holds no code.
 */
#include "worker/nccl_api.h"

#include <nccl.h>

#define ROW(member, symbol)                                                    \
    _Static_assert(                                                            \
        __builtin_types_compatible_p(                                          \
            __typeof__(((struct nccl_api *)0)->member), __typeof__(&symbol)),  \
        #symbol " is declared differently in NCCL's header");
NCCL_API_ROWS(ROW)
#undef ROW

_Static_assert(NCCL_OK == ncclSuccess &&
                   NCCL_INTERNAL_ERROR == ncclInternalError &&
                   NCCL_INVALID_USAGE == ncclInvalidUsage &&
                   NCCL_IN_PROGRESS == ncclInProgress,
               "the results' numbers");
_Static_assert(NCCL_INT32 == ncclInt32 && NCCL_SUM == ncclSum, "numbers");
_Static_assert(NCCL_SPLIT_NONE == NCCL_SPLIT_NOCOLOR, "no color");
_Static_assert(sizeof(struct nccl_id) == sizeof(ncclUniqueId), "the id");

/* The beginning of the config, which versions only append to. */
#define FIELD(ours, theirs)                                                    \
    _Static_assert(offsetof(struct nccl_config, ours) ==                       \
                       offsetof(ncclConfig_t, theirs),                         \
                   #theirs " stands elsewhere in NCCL's header");
FIELD(size, size)
FIELD(magic, magic)
FIELD(version, version)
FIELD(blocking, blocking)
FIELD(cga_cluster_size, cgaClusterSize)
FIELD(min_ctas, minCTAs)
FIELD(max_ctas, maxCTAs)
FIELD(net_name, netName)
FIELD(split_share, splitShare)
