#include "worker/nccl_api.h"

#include "worker/dynlib.h"
#include "worker/fail.h"

static const char *const library_names[] = { "libnccl.so.2", "libnccl.so",
                                             NULL };

int nccl_api_load(struct nccl_api *api_out, struct flaunch_error *error)
{
    struct nccl_api api = { 0 };
    const struct dynlib_symbol symbols[] = {
#define ROW(member, symbol) { #symbol, (void **)&api.member },
        NCCL_API_ROWS(ROW)
#undef ROW
            { NULL, NULL },
    };
    char why[256];
    int rc;

    rc = dynlib_load(library_names, symbols, &api.library, why, sizeof(why));
    if (rc < 0) {
        return fail_set(error, FLAUNCH_NCCL, rc,
                        "NCCL cannot be used (%s); install it, or put its "
                        "directory into LD_LIBRARY_PATH",
                        why);
    }
    *api_out = api;
    return 0;
}
