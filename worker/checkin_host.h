/*
 * Rank 0's part of the check-in: it collects, judges and answers.
 */
#ifndef FLAUNCH_WORKER_CHECKIN_HOST_H
#define FLAUNCH_WORKER_CHECKIN_HOST_H

#include "worker/checkin_record.h"
#include "worker/flaunch.h"
#include "worker/store_client.h"

/* As checkin, on rank 0. */
int checkin_host(struct store_client *client, struct checkin_record *self,
                 uint64_t deadline_ms, uint32_t *n_told_out,
                 char warning_out[VERDICT_MAX], struct flaunch_error *error);

#endif
