/*
 * All ranks meet in the store, compare notes, and get one verdict.
 *
 * Rank 0 publishes a nonce, every rank posts its record into a numbered slot,
 * rank 0 answers each under a key that holds the record's random token:
 * "again" with the right nonce for whoever read an old one, or the verdict. A
 * rank obeys only an answer under its own token, so nothing that an earlier
 * attempt left in the store (torchrun's outlives a restart) is believed.
 */
#ifndef FLAUNCH_WORKER_CHECKIN_H
#define FLAUNCH_WORKER_CHECKIN_H

#include "worker/checkin_record.h"
#include "worker/flaunch.h"
#include "worker/store_client.h"

/*
 * self         token and nonce are filled in here
 * deadline_ms  rank 0 judges a little earlier, so that its verdict reaches
 *              the others before they give up
 * n_told_out   on rank 0: how many others were given the verdict; set also
 *              when it is a bad one
 * warning_out  on rank 0: lines for people about a good job; else ""
 *
 * Returns 0 with the nonce in self->nonce, below which keys of this attempt
 * belong, and in self->reached the address at which ranks of other machines
 * reached rank 0's, "" where there are none. Else a negative errno with the
 * verdict's sentence, the same on every rank.
 */
int checkin(struct store_client *client, struct checkin_record *self,
            uint64_t deadline_ms, uint32_t *n_told_out,
            char warning_out[VERDICT_MAX], struct flaunch_error *error);

#endif
