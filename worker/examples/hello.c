/*
 * The smallest program: who am I, and what do the ranks add up to?
 */
#include <stdio.h>

#include "worker/flaunch.h"

/* On the screen, and in the launcher's report. */
static int fail(const struct flaunch_error *error)
{
    fprintf(stderr, "hello: %s\n", error->text);
    (void)flaunch_report_error(error->text, NULL);
    return 1;
}

int main(void)
{
    struct flaunch_options options = FLAUNCH_OPTIONS_INIT;
    struct flaunch_error error;
    struct flaunch *job;
    int64_t sum;

    options.dist_backend = "gloo";
    if (flaunch_init(&job, &options, &error) < 0) {
        return fail(&error);
    }
    sum = flaunch_rank(job);
    if (flaunch_all_reduce(job, &sum, 1, FLAUNCH_INT64, FLAUNCH_SUM, &error) <
        0) {
        return fail(&error);
    }
    printf("rank %d of %d on %s: the ranks add up to %lld\n", flaunch_rank(job),
           flaunch_world_size(job), flaunch_device(job), (long long)sum);
    flaunch_finalize(job);
    return 0;
}
