/*
 * What is behind struct flaunch.
 */
#ifndef FLAUNCH_WORKER_JOB_H
#define FLAUNCH_WORKER_JOB_H

#include "worker/checkin_record.h"
#include "worker/cuda_device.h"
#include "worker/detect.h"
#include "worker/flaunch.h"
#include "worker/gloo_group.h"
#include "worker/job_store.h"
#include "worker/nccl_group.h"

#include <sys/types.h>

enum backend {
    BACKEND_NONE,
    BACKEND_GLOO,
    BACKEND_NCCL,
    BACKEND_AUTO, /* until it is known which of the two before */
    N_BACKENDS,
};

struct flaunch {
    pid_t pid; /* after a fork the child's copy is of no use */
    struct detected detected;
    size_t n_said;     /* bytes of its explanation that were printed */
    bool check_shapes; /* before each collective, for FLAUNCH_DEBUG=detail */
    enum backend backend;
    struct cuda_device cuda;
    char device_text[16];
    uint64_t deadline_ms;
    struct job_store store;
    struct gloo_group gloo;
    struct nccl_group nccl;
    char nonce[TOKEN_LEN + 1];
};

/* 0, or -EINVAL with a sentence in a forked child. */
int job_check_pid(const struct flaunch *job, struct flaunch_error *error);

#endif
