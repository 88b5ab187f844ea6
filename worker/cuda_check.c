/*
 * Has the compiler compare worker/cuda_api.h with the real header; built only
 * where that is installed. Holds no code.
 */
#include "worker/cuda_api.h"

#include <cuda_runtime_api.h>

/* An enum without negative values is an unsigned int to gcc and clang. */
#define ROW(member, symbol)                                                    \
    _Static_assert(                                                            \
        __builtin_types_compatible_p(                                          \
            __typeof__(((struct cuda_api *)0)->member), __typeof__(&symbol)),  \
        #symbol " is declared differently in the CUDA header");
CUDA_API_ROWS(ROW)
#undef ROW

_Static_assert(CUDA_NO_DEVICE == cudaErrorNoDevice, "the error's number");
