#include "worker/pmix_api.h"

#include "common/dynlib.h"

static const char *const library_names[] = { "libpmix.so.2", "libpmix.so",
                                             NULL };

int pmix_api_load(struct pmix_api *api_out, struct err *err)
{
    struct pmix_api api = { 0 };
    const struct dynlib_symbol symbols[] = {
        { "PMIx_Init", (void **)&api.init, false },
        { "PMIx_Finalize", (void **)&api.finalize, false },
        { "PMIx_Put", (void **)&api.put, false },
        { "PMIx_Commit", (void **)&api.commit, false },
        { "PMIx_Fence", (void **)&api.fence, false },
        { "PMIx_Get", (void **)&api.get, false },
        { "PMIx_Error_string", (void **)&api.error_string, false },
        { NULL, NULL, false },
    };
    char why[256];
    int rc =
        dynlib_load(library_names, symbols, &api.library, why, sizeof(why));

    if (rc < 0) {
        return err_set(err, rc,
                       "PMIx cannot be used (%s); install it (libpmix2), or "
                       "set MASTER_ADDR and MASTER_PORT",
                       why);
    }
    *api_out = api;
    return 0;
}
