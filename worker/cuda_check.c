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

_Static_assert(CUDA_INITIALIZATION_ERROR == cudaErrorInitializationError &&
                   CUDA_STUB_LIBRARY == cudaErrorStubLibrary &&
                   CUDA_INSUFFICIENT_DRIVER == cudaErrorInsufficientDriver &&
                   CUDA_DEVICES_UNAVAILABLE == cudaErrorDevicesUnavailable &&
                   CUDA_NO_DEVICE == cudaErrorNoDevice &&
                   CUDA_NOT_READY == cudaErrorNotReady &&
                   CUDA_SYSTEM_NOT_READY == cudaErrorSystemNotReady &&
                   CUDA_SYSTEM_DRIVER_MISMATCH == cudaErrorSystemDriverMismatch,
               "the errors' numbers");
_Static_assert(CUDA_MEMCPY_HOST_TO_DEVICE == cudaMemcpyHostToDevice &&
                   CUDA_MEMCPY_DEVICE_TO_HOST == cudaMemcpyDeviceToHost &&
                   CUDA_STREAM_NON_BLOCKING == cudaStreamNonBlocking,
               "other numbers");
