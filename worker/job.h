/*
 * What is behind struct flaunch.
 */
#ifndef FLAUNCH_WORKER_JOB_H
#define FLAUNCH_WORKER_JOB_H

#include "worker/checkin_record.h"
#include "worker/cuda_api.h"
#include "worker/detect.h"
#include "worker/flaunch.h"
#include "worker/gloo_group.h"
#include "worker/job_store.h"

enum backend {
    BACKEND_NONE,
    BACKEND_GLOO,
    BACKEND_NCCL,
    N_BACKENDS,
};

struct flaunch {
    struct detected detected;
    enum backend backend;
    int device;
    char device_text[16];
    uint64_t deadline_ms;
    struct job_store store;
    struct gloo_group gloo;
    struct cuda_api cuda;
    char nonce[TOKEN_LEN + 1];
};

/* "none", "gloo", "nccl" */
const char *job_backend_name(enum backend backend);

#endif
