#include "launcher/hwloc_api.h"

#include "common/dynlib.h"

#include <errno.h>

int hwloc_api_load(struct hwloc_api *api_out, struct err *err)
{
    static const char *const names[] = { "libhwloc.so.15", NULL };
    struct hwloc_api api = { 0 };
    const struct dynlib_symbol symbols[] = {
        { "hwloc_topology_init", (void **)&api.topology_init, false },
        { "hwloc_topology_load", (void **)&api.topology_load, false },
        { "hwloc_topology_destroy", (void **)&api.topology_destroy, false },
        { "hwloc_get_type_depth", (void **)&api.get_type_depth, false },
        { "hwloc_get_nbobjs_by_depth", (void **)&api.get_nbobjs_by_depth,
          false },
        { "hwloc_get_obj_by_depth", (void **)&api.get_obj_by_depth, false },
        { "hwloc_bitmap_first", (void **)&api.bitmap_first, false },
        { "hwloc_bitmap_isset", (void **)&api.bitmap_isset, false },
        { NULL, NULL, false },
    };
    void *library;
    char why[256];

    if (dynlib_load(names, symbols, &library, why, sizeof(why)) < 0) {
        return err_set(err, -ENOENT,
                       "--numa-binding needs hwloc 2 (the package libhwloc15 "
                       "or hwloc-libs): %s",
                       why);
    }
    *api_out = api;
    return 0;
}
