/*
 * How fast NCCL's all-reduce is, by message size, without MPI.
 *
 *     bandwidth [-b MIN_BYTES] [-e MAX_BYTES] [-f FACTOR] [-n ITERS] [-w
 * WARMUP]
 *
 * Sizes take K, M or G. The time is the slowest rank's, in microseconds; algbw
 * is bytes / time, busbw that times 2 (n - 1) / n, which does not depend on the
 * number of ranks, both in GB/s. The last column counts wrong elements.
 */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "worker/flaunch.h"

struct settings {
    size_t min_bytes;
    size_t max_bytes;
    size_t factor;
    int iterations;
    int warm_up;
};

struct bench {
    struct flaunch *job;
    ncclComm_t comm;
    cudaStream_t stream;
    float *data;
    float *host;
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "bandwidth: %s: %s\n", what, why);
    exit(1);
}

static void check_cuda(cudaError_t rc, const char *what)
{
    if (rc != cudaSuccess) {
        fail(what, cudaGetErrorString(rc));
    }
}

static double now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void all_reduce(struct bench *bench, size_t count, ncclRedOp_t op)
{
    struct flaunch_error error = { 0 };
    ncclResult_t rc = ncclAllReduce(bench->data, bench->data, count, ncclFloat,
                                    op, bench->comm, bench->stream);

    if (rc == ncclInProgress &&
        flaunch_comm_wait(bench->job, bench->comm, 0, &error) < 0) {
        fail("ncclAllReduce", error.text);
    }
    if (rc != ncclSuccess && rc != ncclInProgress) {
        fail("ncclAllReduce", ncclGetErrorString(rc));
    }
}

static void fill(struct bench *bench, size_t count, float value)
{
    size_t i;

    for (i = 0; i < count; i++) {
        bench->host[i] = value;
    }
    check_cuda(cudaMemcpy(bench->data, bench->host, count * sizeof(float),
                          cudaMemcpyHostToDevice),
               "cudaMemcpy");
}

/* The largest of all ranks' values. */
static double largest(struct bench *bench, double value)
{
    fill(bench, 1, (float)value);
    all_reduce(bench, 1, ncclMax);
    check_cuda(cudaStreamSynchronize(bench->stream), "cudaStreamSynchronize");
    check_cuda(cudaMemcpy(bench->host, bench->data, sizeof(float),
                          cudaMemcpyDeviceToHost),
               "cudaMemcpy");
    return (double)bench->host[0];
}

/* Elements of one sum that are not what they must be. */
static size_t count_wrong(struct bench *bench, size_t count)
{
    int n = flaunch_world_size(bench->job);
    float right = (float)(n * (n + 1) / 2);
    size_t wrong = 0;
    size_t i;

    fill(bench, count, (float)(flaunch_rank(bench->job) + 1));
    all_reduce(bench, count, ncclSum);
    check_cuda(cudaStreamSynchronize(bench->stream), "cudaStreamSynchronize");
    check_cuda(cudaMemcpy(bench->host, bench->data, count * sizeof(float),
                          cudaMemcpyDeviceToHost),
               "cudaMemcpy");
    for (i = 0; i < count; i++) {
        wrong += bench->host[i] < right || bench->host[i] > right;
    }
    return wrong;
}

static void measure(struct bench *bench, const struct settings *settings,
                    size_t bytes)
{
    size_t count = bytes / sizeof(float);
    double n = flaunch_world_size(bench->job);
    size_t wrong = count_wrong(bench, count);
    double us;
    int i;

    fill(bench, count, 0);
    for (i = 0; i < settings->warm_up; i++) {
        all_reduce(bench, count, ncclSum);
    }
    check_cuda(cudaStreamSynchronize(bench->stream), "cudaStreamSynchronize");
    us = now_us();
    for (i = 0; i < settings->iterations; i++) {
        all_reduce(bench, count, ncclSum);
    }
    check_cuda(cudaStreamSynchronize(bench->stream), "cudaStreamSynchronize");
    us = largest(bench, (now_us() - us) / settings->iterations);
    if (flaunch_rank(bench->job) == 0) {
        printf("%12zu %12zu %12.1f %10.2f %10.2f %8zu\n", bytes, count, us,
               (double)bytes / us / 1e3,
               (double)bytes / us / 1e3 * 2 * (n - 1) / n, wrong);
        fflush(stdout);
    }
    if (wrong > 0) {
        fail("all-reduce", "the sums are wrong");
    }
}

static size_t read_size(const char *text)
{
    static const char units[] = "KMG";
    const char *unit;
    char *end;
    size_t size = strtoull(text, &end, 10);

    unit = *end != '\0' ? strchr(units, *end) : NULL;
    if (unit != NULL) {
        size <<= 10 * (unit - units + 1);
        end++;
    }
    if (end == text || *end != '\0' || size == 0) {
        fail("no size or number", text);
    }
    return size;
}

static struct settings read_settings(int argc, char **argv)
{
    struct settings settings = { 8, 64 << 20, 2, 20, 5 };
    int i;

    for (i = 1; i + 1 < argc; i += 2) {
        size_t value = read_size(argv[i + 1]);

        if (strcmp(argv[i], "-b") == 0) {
            settings.min_bytes = value;
        } else if (strcmp(argv[i], "-e") == 0) {
            settings.max_bytes = value;
        } else if (strcmp(argv[i], "-f") == 0 && value > 1) {
            settings.factor = value;
        } else if (strcmp(argv[i], "-n") == 0) {
            settings.iterations = (int)value;
        } else if (strcmp(argv[i], "-w") == 0) {
            settings.warm_up = (int)value;
        } else {
            fail("unknown option, or a factor below 2", argv[i]);
        }
    }
    if (i != argc || settings.min_bytes < sizeof(float)) {
        fail("usage", "[-b MIN] [-e MAX] [-f FACTOR] [-n ITERS] [-w WARMUP]");
    }
    return settings;
}

int main(int argc, char **argv)
{
    struct settings settings = read_settings(argc, argv);
    struct flaunch_options options = FLAUNCH_OPTIONS_INIT;
    struct flaunch_error error;
    struct bench bench = { 0 };
    size_t bytes;

    options.dist_backend = "nccl";
    if (flaunch_init(&bench.job, &options, &error) < 0) {
        fail("flaunch_init", error.text);
    }
    bench.comm = flaunch_nccl_comm(bench.job);
    bench.host = malloc(settings.max_bytes);
    if (bench.host == NULL) {
        fail("malloc", "out of memory");
    }
    check_cuda(cudaStreamCreate(&bench.stream), "cudaStreamCreate");
    check_cuda(cudaMalloc((void **)&bench.data, settings.max_bytes),
               "cudaMalloc");
    printf("# rank %d: %s\n", flaunch_rank(bench.job),
           flaunch_device(bench.job));
    if (flaunch_rank(bench.job) == 0) {
        printf("#%11s %12s %12s %10s %10s %8s\n", "bytes", "count", "time (us)",
               "algbw", "busbw", "wrong");
    }
    for (bytes = settings.min_bytes; bytes <= settings.max_bytes;
         bytes *= settings.factor) {
        measure(&bench, &settings, bytes);
    }
    check_cuda(cudaFree(bench.data), "cudaFree");
    check_cuda(cudaStreamDestroy(bench.stream), "cudaStreamDestroy");
    free(bench.host);
    flaunch_finalize(bench.job);
    return 0;
}
