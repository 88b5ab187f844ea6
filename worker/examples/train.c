/*
 * Trains a small multilayer perceptron on hand-written digits, data-parallel.
 *
 * Every worker holds the whole model and computes the gradient of its share of
 * each batch; one all-reduce adds the shares up. The batch is the same for any
 * number of workers, so 1, 2 and 4 of them give the same losses up to
 * rounding. Run: flaunch --nproc_per_node=4 build/examples/train digits.csv
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/flaunch.h"

enum {
    PIXELS = 64,
    HIDDEN = 48,
    CLASSES = 10,
    BATCH = 64,
    EPOCHS = 30,
    SAMPLES_MAX = 2000,
    W1 = 0, /* where each part of the parameters begins */
    B1 = W1 + PIXELS * HIDDEN,
    W2 = B1 + HIDDEN,
    B2 = W2 + HIDDEN * CLASSES,
    PARAMS = B2 + CLASSES,
};

#define RATE 0.1f
#define MOMENTUM 0.9f

struct sample {
    float pixels[PIXELS];
    int label;
};

static struct sample samples[SAMPLES_MAX];

/* The same numbers on every machine. */
static float random_float(unsigned *state)
{
    *state = *state * 1664525U + 1013904223U;
    return (float)(*state >> 8) / 16777216.0f - 0.5f;
}

static int samples_read(const char *path)
{
    FILE *file = fopen(path, "r");
    int n = 0;
    int i;

    if (file == NULL) {
        perror(path);
        exit(1);
    }
    while (n < SAMPLES_MAX) {
        struct sample *sample = &samples[n];

        for (i = 0; i < PIXELS; i++) {
            if (fscanf(file, "%f,", &sample->pixels[i]) != 1) {
                (void)fclose(file);
                return n;
            }
            sample->pixels[i] /= 16.0f;
        }
        if (fscanf(file, "%d", &sample->label) != 1 || sample->label < 0 ||
            sample->label >= CLASSES) {
            fprintf(stderr, "%s: line %d has no label\n", path, n + 1);
            exit(1);
        }
        n++;
    }
    (void)fclose(file);
    return n;
}

/* Every worker shuffles alike, so the held-out fifth is the same for all. */
static void samples_shuffle(int n)
{
    unsigned state = 1;
    int i;

    for (i = n - 1; i > 0; i--) {
        int j = (int)((random_float(&state) + 0.5f) * (float)(i + 1));
        struct sample swap = samples[i];

        samples[i] = samples[j];
        samples[j] = swap;
    }
}

static void forward(const float *p, const struct sample *sample, float *hidden,
                    float *out)
{
    float highest;
    float sum = 0;
    int i;
    int j;

    for (j = 0; j < HIDDEN; j++) {
        hidden[j] = p[B1 + j];
        for (i = 0; i < PIXELS; i++) {
            hidden[j] += p[W1 + i * HIDDEN + j] * sample->pixels[i];
        }
        hidden[j] = hidden[j] > 0 ? hidden[j] : 0;
    }
    for (j = 0; j < CLASSES; j++) {
        out[j] = p[B2 + j];
        for (i = 0; i < HIDDEN; i++) {
            out[j] += p[W2 + i * CLASSES + j] * hidden[i];
        }
    }
    highest = out[0];
    for (j = 1; j < CLASSES; j++) {
        highest = fmaxf(highest, out[j]);
    }
    for (j = 0; j < CLASSES; j++) {
        out[j] = expf(out[j] - highest);
        sum += out[j];
    }
    for (j = 0; j < CLASSES; j++) {
        out[j] /= sum;
    }
}

/* Add one sample's gradient to grad; returns its loss. */
static float backward(const float *p, const struct sample *sample, float *grad)
{
    float hidden[HIDDEN];
    float out[CLASSES];
    float loss;
    int i;
    int j;

    forward(p, sample, hidden, out);
    loss = -logf(fmaxf(out[sample->label], 1e-12f));
    out[sample->label] -= 1;
    for (i = 0; i < HIDDEN; i++) {
        float back = 0;

        for (j = 0; j < CLASSES; j++) {
            grad[W2 + i * CLASSES + j] += hidden[i] * out[j];
            back += p[W2 + i * CLASSES + j] * out[j];
        }
        if (hidden[i] <= 0) {
            continue;
        }
        grad[B1 + i] += back;
        for (j = 0; j < PIXELS; j++) {
            grad[W1 + j * HIDDEN + i] += back * sample->pixels[j];
        }
    }
    for (j = 0; j < CLASSES; j++) {
        grad[B2 + j] += out[j];
    }
    return loss;
}

static double accuracy(const float *p, int from, int to)
{
    int right = 0;
    int i;
    int j;

    for (i = from; i < to; i++) {
        float hidden[HIDDEN];
        float out[CLASSES];
        int best = 0;

        forward(p, &samples[i], hidden, out);
        for (j = 1; j < CLASSES; j++) {
            best = out[j] > out[best] ? j : best;
        }
        right += best == samples[i].label;
    }
    return (double)right / (to - from);
}

/* On the screen, and in the launcher's report. */
static int fail(const struct flaunch_error *error)
{
    fprintf(stderr, "train: %s\n", error->text);
    (void)flaunch_report_error(error->text, NULL);
    return 1;
}

int main(int argc, char **argv)
{
    static float params[PARAMS];
    static float speed[PARAMS];
    static float grad[PARAMS + 1]; /* and the loss */
    int n = samples_read(argc > 1 ? argv[1] : "worker/examples/digits.csv");
    int n_train = n - n / 5;
    unsigned state = 7;
    int epoch;
    int i;

    /* --- the distributed part --- */
    struct flaunch_options options = FLAUNCH_OPTIONS_INIT;
    struct flaunch_error error;
    struct flaunch *job;

    options.dist_backend = "gloo";
    if (flaunch_init(&job, &options, &error) < 0) {
        return fail(&error);
    }
    int rank = flaunch_rank(job);
    int world_size = flaunch_world_size(job);
    /* --- */

    samples_shuffle(n);
    for (i = 0; i < PARAMS; i++) {
        params[i] = random_float(&state) * (i < B1 ? 0.2f : 0.3f);
    }
    for (epoch = 1; epoch <= EPOCHS; epoch++) {
        double loss = 0;
        int batch;

        for (batch = 0; batch + BATCH <= n_train; batch += BATCH) {
            memset(grad, 0, sizeof(grad));
            for (i = batch + rank; i < batch + BATCH; i += world_size) {
                grad[PARAMS] += backward(params, &samples[i], grad);
            }
            if (flaunch_all_reduce(job, grad, PARAMS + 1, FLAUNCH_FLOAT,
                                   FLAUNCH_SUM, &error) < 0) {
                return fail(&error);
            }
            for (i = 0; i < PARAMS; i++) {
                speed[i] = MOMENTUM * speed[i] + grad[i] / BATCH;
                params[i] -= RATE * speed[i];
            }
            loss += grad[PARAMS] / BATCH;
        }
        if (rank == 0) {
            printf("epoch %d loss %.5f\n", epoch, loss / (n_train / BATCH));
            fflush(stdout);
        }
    }
    if (rank == 0) {
        printf("accuracy %.4f\n", accuracy(params, n_train, n));
    }
    flaunch_finalize(job);
    return 0;
}
