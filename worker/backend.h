/*
 * The backend of a job: none, gloo, nccl, or what the machine has.
 */
#ifndef FLAUNCH_WORKER_BACKEND_H
#define FLAUNCH_WORKER_BACKEND_H

#include "worker/job.h"

/* "none", "gloo", "nccl", "auto" */
const char *backend_name(enum backend backend);

/* NULL: none. 0, or -EINVAL with a sentence. */
int backend_read(const char *name, enum backend *backend_out,
                 struct flaunch_error *error);

/*
 * What this rank needs of its own machine: device and libraries. "auto" is
 * settled. self gets what the others compare.
 *
 * Returns 0, or a negative errno with a sentence, which is to be told to the
 * others before it is returned.
 */
int backend_prepare(struct flaunch *job, const struct flaunch_options *options,
                    struct checkin_record *self, struct flaunch_error *error);

/* Connect to the others: after the check-in. */
int backend_open(struct flaunch *job, const struct checkin_record *self,
                 struct flaunch_error *error);

void backend_close(struct flaunch *job);

#endif
