/*
 * The store of a job: the launcher's, or one that rank 0 serves and the others
 * find, at an address all know or over a foreign channel.
 *
 * Over the channel go only addresses, a port and a random token. The token is
 * also a key of the store, so that another job's store at that place is passed
 * over.
 */
#ifndef FLAUNCH_WORKER_JOB_STORE_H
#define FLAUNCH_WORKER_JOB_STORE_H

#include "worker/detect.h"
#include "worker/meet.h"
#include "worker/store_client.h"

struct job_store {
    struct store_client client;
    struct store_host *host; /* rank 0, where nobody else serves one */
    bool by_rank_0;
    bool open; /* false for a job of one, which needs none */
    struct meet meet;
};

/*
 * Find or serve the store, and connect. What only the channel knows of the
 * rank's place is filled in.
 *
 * Returns 0 or a negative errno with a sentence (FLAUNCH_STORE).
 */
int job_store_open(struct job_store *store, struct detected *detected,
                   uint64_t deadline_ms, struct flaunch_error *error);

/*
 * The store is needed no longer. Where rank 0 serves it, the others say so, and
 * it waits until n_others have: it must not leave first.
 *
 * all_came  false after a bad verdict: others may still come for it
 */
int job_store_leave(struct job_store *store, bool all_came, uint32_t n_others,
                    uint64_t deadline_ms, struct flaunch_error *error);

/* Close; allowed where nothing was opened, and twice. */
void job_store_close(struct job_store *store);

#endif
