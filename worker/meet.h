/*
 * Ranks that know no store yet meet over somebody else's channel: one small
 * interface over PMI-1, PMIx, Horovod's HTTP store and a file.
 *
 * Only one short text crosses it, from rank 0: where its store is. Keys and
 * values are printable ASCII without blanks and ";", keys up to 60 bytes,
 * values up to MEET_VALUE_MAX - 1: what the narrowest of them (PMI-1) takes.
 */
#ifndef FLAUNCH_WORKER_MEET_H
#define FLAUNCH_WORKER_MEET_H

#include "common/err.h"
#include "worker/detect.h"

#define MEET_VALUE_MAX 900

struct meet;

struct meet_ops {
    /* Publish a value; visible to others after the fence. */
    int (*put)(struct meet *meet, const char *key, const char *value,
               uint64_t deadline_ms, struct err *err);
    /* Wait for all ranks, where the channel needs it. */
    int (*fence)(struct meet *meet, uint64_t deadline_ms, struct err *err);
    /* Wait for a value. It may be one that an earlier job left. */
    int (*get)(struct meet *meet, const char *key, char *value_out, size_t size,
               uint64_t deadline_ms, struct err *err);
    /* Take leave, in time, and free the state. */
    void (*close)(struct meet *meet, uint64_t deadline_ms);
};

struct meet {
    const struct meet_ops *ops;
    void *state;
    bool may_be_old; /* values of earlier jobs may still be there */
};

/*
 * Open the channel that detected names, and fill in there what only the channel
 * knows: rank, sizes, local rank.
 *
 * Returns 0 or a negative errno with a sentence: -ENOENT where a library is not
 * installed, -EPROTO, -EINVAL, -ETIMEDOUT, or of files and sockets.
 */
int meet_open(struct meet *meet, struct detected *detected,
              uint64_t deadline_ms, struct err *err);

/* Close; allowed where nothing was opened. */
void meet_close(struct meet *meet, uint64_t deadline_ms);

/* One of each channel; as meet_open. */
int meet_pmi_open(struct meet *meet, struct detected *detected,
                  uint64_t deadline_ms, struct err *err);
int meet_pmix_open(struct meet *meet, struct detected *detected,
                   uint64_t deadline_ms, struct err *err);

/* Whether libpmix can be loaded. */
bool meet_pmix_is_there(void);
int meet_horovod_open(struct meet *meet, struct detected *detected,
                      uint64_t deadline_ms, struct err *err);
int meet_file_open(struct meet *meet, struct detected *detected,
                   uint64_t deadline_ms, struct err *err);

#endif
