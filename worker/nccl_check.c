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

_Static_assert(NCCL_OK == ncclSuccess, "the result's number");
