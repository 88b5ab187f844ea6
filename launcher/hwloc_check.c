/*
 * Has the compiler compare launcher/hwloc_api.h with the real header; built
 * only where that is installed. Holds no code.
 */
#include "launcher/hwloc_api.h"

#include <hwloc.h>

#include <stddef.h>

_Static_assert(HWLOC_API_PACKAGE == HWLOC_OBJ_PACKAGE &&
                   HWLOC_API_CORE == HWLOC_OBJ_CORE &&
                   HWLOC_API_PU == HWLOC_OBJ_PU &&
                   HWLOC_API_L1CACHE == HWLOC_OBJ_L1CACHE &&
                   HWLOC_API_L5CACHE == HWLOC_OBJ_L5CACHE,
               "types");
_Static_assert(HWLOC_API_DEPTH_NUMANODE == HWLOC_TYPE_DEPTH_NUMANODE, "depth");
_Static_assert(offsetof(struct hwloc_api_obj, os_index) ==
                   offsetof(struct hwloc_obj, os_index),
               "os_index");
_Static_assert(offsetof(struct hwloc_api_obj, logical_index) ==
                   offsetof(struct hwloc_obj, logical_index),
               "logical_index");
_Static_assert(offsetof(struct hwloc_api_obj, parent) ==
                   offsetof(struct hwloc_obj, parent),
               "parent");
_Static_assert(offsetof(struct hwloc_api_obj, cpuset) ==
                   offsetof(struct hwloc_obj, cpuset),
               "cpuset");
