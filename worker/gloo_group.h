/*
 * The gloo backend: loads libflaunch_gloo.so and meets in the store.
 */
#ifndef FLAUNCH_WORKER_GLOO_GROUP_H
#define FLAUNCH_WORKER_GLOO_GROUP_H

#include "worker/flaunch.h"
#include "worker/gloo_shim.h"
#include "worker/store_client.h"

struct gloo_group {
    const struct gloo_shim *shim;
    void *group;
};

/* Load the shared object: 0, or -ENOENT with what to install. */
int gloo_group_load(struct gloo_group *gloo, struct flaunch_error *error);

/*
 * Connect to all peers; their keys are below prefix. 0 or a negative errno.
 *
 * reached  where other machines reach the store's, "" where there are none: a
 *          rank beside the store, which it reaches over loopback, is reached
 *          there too
 */
int gloo_group_open(struct gloo_group *gloo, int rank, int world_size,
                    struct store_client *client, const char *reached,
                    const char *prefix, uint64_t deadline_ms,
                    struct flaunch_error *error);

/* Close; allowed where nothing was opened. */
void gloo_group_close(struct gloo_group *gloo);

#endif
