/*
 * What a rank tells the others first: codec, and the verdict over all of
 * them; pure.
 */
#ifndef FLAUNCH_WORKER_CHECKIN_RECORD_H
#define FLAUNCH_WORKER_CHECKIN_RECORD_H

#include "common/buf.h"
#include "worker/token.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VERDICT_MAX 1024

struct checkin_record {
    char token[TOKEN_LEN + 1]; /* of this record; random */
    char nonce[TOKEN_LEN + 1]; /* rank 0's, echoed; "" before it is known */
    uint32_t rank;
    uint32_t world_size;
    uint32_t local_rank;
    uint32_t local_world_size;
    bool local_rank_assumed; /* LOCAL_RANK was not set */
    uint32_t pid;
    uint32_t posted_s;      /* wall clock: tells what an old attempt left */
    uint32_t nccl_version;  /* 0: not used */
    uint32_t device_plus_1; /* 0: the CPU */
    char host[256];         /* for people */
    char machine[64];       /* the machine's boot id: the same, the same host */
    char gpu[64];           /* its UUID, else its PCI address; "" on the CPU */
    char visible[128];      /* CUDA_VISIBLE_DEVICES */
    char nccl_path[128];    /* of the library */
    char backend[16];
    char reached[64];   /* the address at which it reached the store */
    char settings[256]; /* variables of NCCL that all should have alike */
    char interface[96]; /* NCCL\'s likely choice: name and address */
    char no_gpu[160];   /* why "auto" came to gloo */
    char error[512];    /* what kept this rank from going on; "" nothing */
};

/* Append the record: 0 or -ENOMEM. */
int checkin_record_encode(struct buf *out, const struct checkin_record *record);

/* Read a record: 0 or -EPROTO. Texts that are too long are refused. */
int checkin_record_decode(const uint8_t *data, size_t len,
                          struct checkin_record *record_out);

/* Whether two ranks run on one machine. */
bool checkin_same_machine(const struct checkin_record *a,
                          const struct checkin_record *b);

/*
 * Judge what has come.
 *
 * seats     world_size records; those with an empty token are missing
 * waited_s  how long, where the time is up; 0 while it is not
 *
 * Returns true with text "" when all are there and fit together, true with a
 * sentence when something is wrong for good, false when more must come.
 */
bool checkin_judge(const struct checkin_record *seats, uint32_t world_size,
                   double waited_s, char text_out[VERDICT_MAX]);

/*
 * What is no error but worth knowing of a job that is whole: lines for
 * flaunch_explain(), "" where there are none.
 */
void checkin_warn(const struct checkin_record *seats, uint32_t world_size,
                  char text_out[VERDICT_MAX]);

#endif
