#include "worker/cuda_api.h"

#include "worker/dynlib.h"
#include "worker/fail.h"

#include <errno.h>

static const char *const library_names[] = { "libcudart.so", "libcudart.so.13",
                                             "libcudart.so.12",
                                             "libcudart.so.11.0", NULL };

int cuda_api_load(struct cuda_api *api_out, struct flaunch_error *error)
{
    struct cuda_api api = { 0 };
    const struct dynlib_symbol symbols[] = {
#define ROW(member, symbol) { #symbol, (void **)&api.member },
        CUDA_API_ROWS(ROW)
#undef ROW
            { NULL, NULL },
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

int cuda_api_count(const struct cuda_api *api, int *n_out,
                   struct flaunch_error *error)
{
    cuda_error rc = api->get_device_count(n_out);
    int driver = 0;

    if (rc == CUDA_OK) {
        return 0;
    }
    if (rc == CUDA_NO_DEVICE) {
        *n_out = 0;
        return 0;
    }
    /* Version 0 tells "no driver" from "driver too old". */
    (void)api->driver_get_version(&driver);
    return fail_set(error, FLAUNCH_CUDA, -ENODEV, "CUDA error %u: %s%s", rc,
                    api->get_error_string(rc),
                    driver == 0 ? " (no NVIDIA driver is loaded here)" : "");
}
