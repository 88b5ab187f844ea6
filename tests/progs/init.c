/*
 * Calls flaunch_init as its arguments say and prints what it got:
 *     init [backend=B] [launcher=L] [dist_url=U] [horovod] [timeout_ms=N]
 *          [skip=RANK] [ops] [mismatch]
 * skip: that rank leaves without a word. ops: every collective with every
 * type and operation, compared with what it must give. mismatch: an all-reduce
 * of as many elements as the rank + 1.
 */
#include "worker/flaunch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 1000

/* In range of every type, and different for each rank and place. */
static double value(int rank, int i)
{
    return (double)((rank + 1) * (i % 7 + 1) % 5 + 1);
}

static double combined(int world_size, int i, enum flaunch_op op)
{
    double result = value(0, i);
    int rank;

    for (rank = 1; rank < world_size; rank++) {
        double next = value(rank, i);

        switch (op) {
        case FLAUNCH_SUM:
            result += next;
            break;
        case FLAUNCH_PRODUCT:
            result *= next;
            break;
        case FLAUNCH_MIN:
            result = next < result ? next : result;
            break;
        case FLAUNCH_MAX:
            result = next > result ? next : result;
            break;
        }
    }
    return result;
}

static void put(void *data, enum flaunch_type type, int i, double number)
{
    switch (type) {
    case FLAUNCH_FLOAT:
        ((float *)data)[i] = (float)number;
        break;
    case FLAUNCH_DOUBLE:
        ((double *)data)[i] = number;
        break;
    case FLAUNCH_INT32:
        ((int32_t *)data)[i] = (int32_t)number;
        break;
    case FLAUNCH_INT64:
        ((int64_t *)data)[i] = (int64_t)number;
        break;
    }
}

static double get(const void *data, enum flaunch_type type, int i)
{
    switch (type) {
    case FLAUNCH_FLOAT:
        return (double)((const float *)data)[i];
    case FLAUNCH_DOUBLE:
        return ((const double *)data)[i];
    case FLAUNCH_INT32:
        return ((const int32_t *)data)[i];
    default:
        return (double)((const int64_t *)data)[i];
    }
}

static void require(int ok, const char *what, const struct flaunch_error *error)
{
    if (!ok) {
        printf("wrong: %s %s\n", what, error->text);
        exit(3);
    }
}

static void try_type(struct flaunch *job, enum flaunch_type type)
{
    int world_size = flaunch_world_size(job);
    int rank = flaunch_rank(job);
    double *data = calloc(N, sizeof(double));
    double *all = calloc((size_t)world_size * N, sizeof(double));
    struct flaunch_error error = { 0 };
    int op;
    int i;
    int r;

    for (op = FLAUNCH_SUM; op <= FLAUNCH_PRODUCT; op++) {
        for (i = 0; i < N; i++) {
            put(data, type, i, value(rank, i));
        }
        require(flaunch_all_reduce(job, data, N, type, (enum flaunch_op)op,
                                   &error) == 0,
                "all_reduce", &error);
        for (i = 0; i < N; i++) {
            double wanted = combined(world_size, i, (enum flaunch_op)op);

            require(get(data, type, i) >= wanted &&
                        get(data, type, i) <= wanted,
                    "result of all_reduce", &error);
        }
    }
    for (i = 0; i < N; i++) {
        put(data, type, i, value(rank, i));
    }
    require(flaunch_all_gather(job, data, all, N, type, &error) == 0,
            "all_gather", &error);
    for (r = 0; r < world_size; r++) {
        for (i = 0; i < N; i++) {
            require(get(all, type, r * N + i) >= value(r, i) &&
                        get(all, type, r * N + i) <= value(r, i),
                    "result of all_gather", &error);
        }
    }
    require(flaunch_broadcast(job, data, N, type, world_size - 1, &error) == 0,
            "broadcast", &error);
    for (i = 0; i < N; i++) {
        double wanted = value(world_size - 1, i);

        require(get(data, type, i) >= wanted && get(data, type, i) <= wanted,
                "result of broadcast", &error);
    }
    free(all);
    free(data);
}

static void try_all(struct flaunch *job)
{
    struct flaunch_error error = { 0 };
    int type;
    float x = 1;

    for (type = FLAUNCH_FLOAT; type <= FLAUNCH_INT64; type++) {
        try_type(job, (enum flaunch_type)type);
    }
    require(flaunch_barrier(job, &error) == 0, "barrier", &error);
    require(
        flaunch_all_reduce(job, &x, 0, FLAUNCH_FLOAT, FLAUNCH_SUM, &error) == 0,
        "no elements", &error);
    require(flaunch_all_reduce(job, &x, 1, (enum flaunch_type)9, FLAUNCH_SUM,
                               &error) < 0,
            "an unknown type was taken", &error);
    require(flaunch_all_reduce(job, &x, 1, FLAUNCH_FLOAT, (enum flaunch_op)9,
                               &error) < 0,
            "an unknown operation was taken", &error);
    require(flaunch_broadcast(job, &x, 1, FLAUNCH_FLOAT, 99, &error) < 0,
            "an unknown root was taken", &error);
    printf("rank %d: all right\n", flaunch_rank(job));
}

int main(int argc, char **argv)
{
    struct flaunch_options options = FLAUNCH_OPTIONS_INIT;
    struct flaunch_error error;
    struct flaunch *job = NULL;
    const char *rank = getenv("RANK");
    float x = 1;
    int mismatch = 0;
    int ops = 0;
    int i;

    for (i = 1; i < argc; i++) {
        const char *value_of = strchr(argv[i], '=');

        value_of = value_of != NULL ? value_of + 1 : "";
        if (strncmp(argv[i], "backend=", 8) == 0) {
            options.dist_backend = value_of;
        } else if (strncmp(argv[i], "launcher=", 9) == 0) {
            options.launcher = value_of;
        } else if (strncmp(argv[i], "dist_url=", 9) == 0) {
            options.dist_url = value_of;
        } else if (strcmp(argv[i], "horovod") == 0) {
            options.horovod = 1;
        } else if (strncmp(argv[i], "timeout_ms=", 11) == 0) {
            options.timeout_ms = strtoull(value_of, NULL, 10);
        } else if (strncmp(argv[i], "size=", 5) == 0) {
            options.size = strtoul(value_of, NULL, 10);
        } else if (strncmp(argv[i], "skip=", 5) == 0) {
            if (rank != NULL && strcmp(rank, value_of) == 0) {
                return 0;
            }
        } else if (strcmp(argv[i], "ops") == 0) {
            ops = 1;
        } else if (strcmp(argv[i], "mismatch") == 0) {
            mismatch = 1;
        }
    }
    if (flaunch_init(&job, &options, &error) < 0) {
        printf("error %d: %s\n", (int)error.domain, error.text);
        return 1;
    }
    if (mismatch) {
        float many[64] = { 0 };

        if (flaunch_all_reduce(job, many, (size_t)flaunch_rank(job) + 1,
                               FLAUNCH_FLOAT, FLAUNCH_SUM, &error) < 0) {
            printf("error %d: %s\n", (int)error.domain, error.text);
        }
    } else if (ops) {
        try_all(job);
    } else {
        printf("%s %d/%d local %d/%d %s %s %d\n", flaunch_launcher(job),
               flaunch_rank(job), flaunch_world_size(job),
               flaunch_local_rank(job), flaunch_local_world_size(job),
               flaunch_device(job), flaunch_backend(job),
               flaunch_distributed(job));
        if (flaunch_explain(job)[0] == 0 || flaunch_version()[0] == 0) {
            return 4;
        }
        if (strcmp(flaunch_backend(job), "none") == 0 &&
            flaunch_all_reduce(job, &x, 1, FLAUNCH_FLOAT, FLAUNCH_SUM,
                               &error) == 0) {
            return 5;
        }
    }
    flaunch_finalize(job);
    flaunch_finalize(NULL);
    return 0;
}
