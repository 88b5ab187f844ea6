#include "worker/cuda_api.h"

#include "common/dynlib.h"
#include "worker/fail.h"

#include <errno.h>

static const char *const library_names[] = { "libcudart.so", "libcudart.so.13",
                                             "libcudart.so.12",
                                             "libcudart.so.11.0", NULL };

int cuda_api_load(struct cuda_api *api_out, struct flaunch_error *error)
{
    struct cuda_api api = { 0 };
    const struct dynlib_symbol symbols[] = {
#define ROW(member, symbol) { #symbol, (void **)&api.member, false },
        CUDA_API_ROWS(ROW)
#undef ROW
            { NULL, NULL, false },
    };
    char why[256];
    int rc;

    rc = dynlib_load(library_names, symbols, &api.library, why, sizeof(why));
    if (rc < 0) {
        return fail_set(error, FLAUNCH_CUDA, rc,
                        "the CUDA runtime cannot be used (%s); install it, or "
                        "put its directory into LD_LIBRARY_PATH",
                        why);
    }
    *api_out = api;
    return 0;
}
