/*
 * Has the compiler compare worker/pmix_api.h with the real header; built only
 * where that is installed. Holds no code.
 */
#include "worker/pmix_api.h"

#include <pmix.h>

_Static_assert(sizeof(struct pmix_api_proc) == sizeof(pmix_proc_t), "proc");
_Static_assert(offsetof(struct pmix_api_proc, rank) ==
                   offsetof(pmix_proc_t, rank),
               "proc's rank");
_Static_assert(sizeof(struct pmix_api_value) == sizeof(pmix_value_t), "value");
_Static_assert(offsetof(struct pmix_api_value, data) ==
                   offsetof(pmix_value_t, data),
               "value's data");
_Static_assert(sizeof(struct pmix_api_info) == sizeof(pmix_info_t), "info");
_Static_assert(offsetof(struct pmix_api_info, value) ==
                   offsetof(pmix_info_t, value),
               "info's value");
_Static_assert(PMIX_API_OK == PMIX_SUCCESS && PMIX_API_GLOBAL == PMIX_GLOBAL &&
                   PMIX_API_RANK_WILDCARD == PMIX_RANK_WILDCARD,
               "numbers");
_Static_assert(PMIX_API_BOOL == PMIX_BOOL && PMIX_API_STRING == PMIX_STRING &&
                   PMIX_API_SIZE == PMIX_SIZE && PMIX_API_INT == PMIX_INT &&
                   PMIX_API_INT32 == PMIX_INT32 && PMIX_API_UINT == PMIX_UINT &&
                   PMIX_API_UINT16 == PMIX_UINT16 &&
                   PMIX_API_UINT32 == PMIX_UINT32 &&
                   PMIX_API_UINT64 == PMIX_UINT64,
               "types");
_Static_assert(sizeof(PMIX_API_JOB_SIZE) == sizeof(PMIX_JOB_SIZE) &&
                   sizeof(PMIX_API_LOCAL_SIZE) == sizeof(PMIX_LOCAL_SIZE) &&
                   sizeof(PMIX_API_LOCAL_RANK) == sizeof(PMIX_LOCAL_RANK) &&
                   sizeof(PMIX_API_COLLECT) == sizeof(PMIX_COLLECT_DATA),
               "keys");
