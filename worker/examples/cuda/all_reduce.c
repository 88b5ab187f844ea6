/*
 * Sums a vector over all GPUs: NCCL's own call on the communicator that
 * flaunch_init made.
 *
 *     cc -o all_reduce all_reduce.c -lflaunch -lnccl -lcudart
 *     flaunch --nproc_per_node=gpu ./all_reduce
 */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker/flaunch.h"

enum {
    N = 1 << 20
};

static void check_cuda(cudaError_t rc, const char *what)
{
    if (rc != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(rc));
        exit(1);
    }
}

int main(void)
{
    struct flaunch_options options = FLAUNCH_OPTIONS_INIT;
    struct flaunch_error error;
    struct flaunch *job;
    float *host = malloc(N * sizeof(float));
    float *device;
    cudaStream_t stream;
    ncclResult_t rc;
    int i;

    options.dist_backend = "nccl";
    if (host == NULL || flaunch_init(&job, &options, &error) < 0) {
        fprintf(stderr, "all_reduce: %s\n", host != NULL ? error.text : "?");
        return 1;
    }
    /* flaunch_device_index(job) is the current device from here on. */
    check_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
    check_cuda(cudaMalloc((void **)&device, N * sizeof(float)), "cudaMalloc");
    for (i = 0; i < N; i++) {
        host[i] = (float)(flaunch_rank(job) + 1);
    }
    check_cuda(
        cudaMemcpy(device, host, N * sizeof(float), cudaMemcpyHostToDevice),
        "cudaMemcpy");

    rc = ncclAllReduce(device, device, N, ncclFloat, ncclSum,
                       flaunch_nccl_comm(job), stream);
    if ((rc != ncclSuccess && rc != ncclInProgress) ||
        flaunch_comm_wait(job, flaunch_nccl_comm(job), 0, &error) < 0) {
        fprintf(stderr, "ncclAllReduce: %s\n", ncclGetErrorString(rc));
        return 1;
    }
    check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");

    check_cuda(
        cudaMemcpy(host, device, N * sizeof(float), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
    printf("rank %d of %d on %s: the ranks add up to %g\n", flaunch_rank(job),
           flaunch_world_size(job), flaunch_device(job), (double)host[N - 1]);
    check_cuda(cudaFree(device), "cudaFree");
    check_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
    free(host);
    flaunch_finalize(job);
    return 0;
}
