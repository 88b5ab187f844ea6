/*
 * A job with the backend nccl: sums over all ranks and over a part of them,
 * with the communicators of libflaunch, as a CUDA program would.
 *     nccl_job [backend=B] [timeout_ms=N] [twice] [fork] [exit]
 * twice: a second job after the first. fork: what a forked child is told.
 * exit: leave without flaunch_finalize.
 */
#include "worker/cuda_api.h"
#include "worker/flaunch.h"
#include "worker/nccl_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N 1000

static struct cuda_api cuda;
static struct nccl_api nccl;

static void require(int ok, const char *what, const struct flaunch_error *error)
{
    if (!ok) {
        printf("wrong: %s %s\n", what, error->text);
        exit(3);
    }
}

/* The sum of 1 + rank over a communicator's ranks. */
static int sum(struct flaunch *job, void *comm, int mine)
{
    struct flaunch_error error = { 0 };
    struct CUstream_st *stream;
    int32_t host[N];
    void *data;
    int i;

    for (i = 0; i < N; i++) {
        host[i] = mine;
    }
    require(cuda.malloc(&data, sizeof(host)) == CUDA_OK &&
                cuda.stream_create_with_flags(&stream, 0) == CUDA_OK &&
                cuda.memcpy(data, host, sizeof(host),
                            CUDA_MEMCPY_HOST_TO_DEVICE) == CUDA_OK,
            "memory", &error);
    i = (int)nccl.all_reduce(data, data, N, NCCL_INT32, NCCL_SUM, comm, stream);
    require(i == NCCL_OK || i == NCCL_IN_PROGRESS, "ncclAllReduce", &error);
    require(flaunch_comm_wait(job, comm, 60000, &error) == 0, "wait", &error);
    while (cuda.stream_query(stream) == CUDA_NOT_READY) {
        (void)usleep(1000);
    }
    require(cuda.memcpy(host, data, sizeof(host), CUDA_MEMCPY_DEVICE_TO_HOST) ==
                CUDA_OK,
            "memory", &error);
    for (i = 1; i < N; i++) {
        require(host[i] == host[0], "an element differs", &error);
    }
    (void)cuda.stream_destroy(stream);
    (void)cuda.free(data);
    return host[0];
}

static void check_fork(struct flaunch *job)
{
    struct flaunch_error error;
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        void *comm;
        int refused = flaunch_nccl_comm(job) == NULL &&
                      flaunch_comm_split(job, 0, 0, 0, &comm, &error) < 0 &&
                      strstr(error.text, "was forked from") != NULL;

        flaunch_finalize(job); /* ends nothing of its parent's */
        _exit(refused ? 0 : 1);
    }
    (void)waitpid(pid, &status, 0);
    require(status == 0, "a forked child was taken for a rank", &error);
}

static int run(const struct flaunch_options *options, int do_fork, int leave)
{
    struct flaunch_error error;
    struct flaunch *job;
    float x = 1;
    void *part;
    void *none = &x;
    int total;
    int parted;

    if (flaunch_init(&job, options, &error) < 0) {
        printf("error %d %d: %s\n", (int)error.domain, error.code, error.text);
        (void)fflush(stdout);
        _exit(1); /* NCCL may hang in exit handlers */
    }
    require(nccl_api_load(&nccl, &error) == 0 &&
                cuda_api_load(&cuda, &error) == 0,
            "libraries", &error);
    if (do_fork) {
        check_fork(job);
    }
    require(flaunch_all_reduce(job, &x, 1, FLAUNCH_FLOAT, FLAUNCH_SUM, &error) <
                    0 &&
                strstr(error.text, "flaunch_nccl_comm()") != NULL,
            "a collective on host memory", &error);
    total = sum(job, flaunch_nccl_comm(job), 1 + flaunch_rank(job));
    require(flaunch_comm_split(job, flaunch_rank(job) % 2, 0, 60000, &part,
                               &error) == 0,
            "split", &error);
    parted = sum(job, part, 1 + flaunch_rank(job));
    require(flaunch_comm_split(job, -1, 0, 60000, &none, &error) == 0 &&
                none == NULL,
            "split without a color", &error);
    printf("%s %d/%d %s sum %d part %d\n", flaunch_launcher(job),
           flaunch_rank(job), flaunch_world_size(job), flaunch_device(job),
           total, parted);
    (void)fflush(stdout);
    if (leave) {
        _exit(0);
    }
    flaunch_finalize(job);
    return 0;
}

int main(int argc, char **argv)
{
    struct flaunch_options options = FLAUNCH_OPTIONS_INIT;
    int twice = 0;
    int do_fork = 0;
    int leave = 0;
    int i;

    options.dist_backend = "nccl";
    for (i = 1; i < argc; i++) {
        if (strncmp(argv[i], "backend=", 8) == 0) {
            options.dist_backend = argv[i] + 8;
        } else if (strncmp(argv[i], "timeout_ms=", 11) == 0) {
            options.timeout_ms = strtoull(argv[i] + 11, NULL, 10);
        } else if (strcmp(argv[i], "no_set_device_rank") == 0) {
            options.no_set_device_rank = 1;
        } else if (strncmp(argv[i], "device=", 7) == 0) {
            options.device_plus_1 = atoi(argv[i] + 7) + 1;
        }
        twice = twice || strcmp(argv[i], "twice") == 0;
        do_fork = do_fork || strcmp(argv[i], "fork") == 0;
        leave = leave || strcmp(argv[i], "exit") == 0;
    }
    if (twice) {
        (void)run(&options, 0, 0);
    }
    return run(&options, do_fork, leave);
}
