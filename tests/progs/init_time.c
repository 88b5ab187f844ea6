/*
 * When this process began, and when flaunch_init was done, in nanoseconds of
 * the monotonic clock; and how many requests it cost:
 *     init_time [BACKEND [DIST_URL]]
 */
#include "common/clock.h"
#include "worker/flaunch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    struct flaunch_options options = FLAUNCH_OPTIONS_INIT;
    uint64_t begin_ns = clock_ns();
    struct flaunch_error error;
    struct flaunch *job;
    const char *requests;
    uint64_t end_ns;

    options.dist_backend = argc > 1 ? argv[1] : "none";
    options.dist_url = argc > 2 ? argv[2] : NULL;
    if (flaunch_init(&job, &options, &error) < 0) {
        (void)fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    end_ns = clock_ns();
    requests = strstr(flaunch_explain(job), "store: ");
    while (requests != NULL && strstr(requests + 1, "\nstore: ") != NULL) {
        requests = strstr(requests + 1, "\nstore: ") + 1;
    }
    printf("rank=%d begin=%" PRIu64 " end=%" PRIu64 " requests=%ld\n",
           flaunch_rank(job), begin_ns, end_ns,
           requests != NULL ? strtol(requests + 7, NULL, 10) : 0);
    (void)fflush(stdout);
    flaunch_finalize(job);
    return 0;
}
