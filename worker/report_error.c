#include "worker/flaunch.h"

#include "common/env_names.h"
#include "common/error_file.h"
#include "worker/fail.h"

#include <errno.h>
#include <stdlib.h>

int flaunch_report_error(const char *message, struct flaunch_error *error)
{
    const char *path = getenv(ENV_ERROR_FILE);
    struct err err = { 0 };
    int rc;

    if (path == NULL || path[0] == '\0') {
        return fail_set(error, FLAUNCH_SYSTEM, -ENOENT,
                        "no launcher asks for errors: %s is not set",
                        ENV_ERROR_FILE);
    }
    rc = error_file_write(path, message, &err);
    return rc < 0 ? fail_set(error, FLAUNCH_SYSTEM, rc, "%s", err.text) : 0;
}
