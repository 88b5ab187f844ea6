/*
 * A CUDA runtime on host memory. GPUs are those of CUDA_VISIBLE_DEVICES, or as
 * many as the script says (8).
 */
#include "tests/standin/standin.h"

#include <unistd.h>

#define CUDART "STANDIN_CUDA"
#define GPUS_MAX 512

typedef struct CUstream_st *stream_t;

/* The current device is a thread's own, and 0 until it says otherwise. */
static __thread int current;

/* With "only_own", whatever makes a context must be on the device that the
 * process chose first: on another it takes memory there. */
static int chosen = -1;

static void make_context(void)
{
    char value[64];

    if (script_get(CUDART, "only_own", value) && current != chosen) {
        (void)fprintf(stderr, "standin: a context on device %d, not %d\n",
                      current, chosen);
        abort();
    }
}

/* The physical numbers of the visible GPUs. */
static int visible(int numbers[GPUS_MAX])
{
    int n_real = script_int(CUDART, "count", 8);
    const char *at = getenv("CUDA_VISIBLE_DEVICES");
    int n = 0;

    if (at == NULL) {
        for (; n < n_real && n < GPUS_MAX; n++) {
            numbers[n] = n;
        }
        return n;
    }
    while (*at != '\0' && n < GPUS_MAX) {
        char *end;
        long number = strtol(at, &end, 10);

        if (end == at || number < 0 || number >= n_real) {
            break; /* such an entry hides what follows */
        }
        numbers[n++] = (int)number;
        at = *end == ',' ? end + 1 : end;
    }
    return n;
}

unsigned cudaGetDeviceCount(int *count)
{
    int numbers[GPUS_MAX];
    unsigned error = (unsigned)script_int(CUDART, "count_error", 0);
    char value[64];
    int n;

    while (script_get(CUDART, "hang", value)) {
        (void)sleep(1000);
    }
    if (error != 0) {
        return error;
    }
    n = visible(numbers);
    if (script_get(CUDART, "none", value)) {
        *count = 0; /* as some drivers have it */
        return 0;
    }
    if (n == 0) {
        return 100;
    }
    *count = n;
    return 0;
}

unsigned cudaSetDevice(int device)
{
    int numbers[GPUS_MAX];
    unsigned error = (unsigned)script_int(CUDART, "set_error", 0);

    if (error != 0) {
        return error;
    }
    if (device < 0 || device >= visible(numbers)) {
        return 101;
    }
    current = device;
    chosen = chosen < 0 ? device : chosen;
    make_context();
    return 0;
}

unsigned cudaGetDevice(int *device)
{
    *device = current;
    return 0;
}

unsigned cudaDeviceGetPCIBusId(char *text, int len, int device)
{
    int numbers[GPUS_MAX];

    if (device < 0 || device >= visible(numbers)) {
        return 101;
    }
    (void)snprintf(text, (size_t)len, "0000:%02x:00.0", numbers[device] + 1);
    return 0;
}

unsigned cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

unsigned cudaDriverGetVersion(int *version)
{
    *version = script_int(CUDART, "driver", 13000);
    return 0;
}

const char *cudaGetErrorString(unsigned error)
{
    switch (error) {
    case 0:
        return "no error";
    case 35:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case 46:
        return "CUDA-capable device(s) is/are busy or unavailable";
    case 100:
        return "no CUDA-capable device is detected";
    case 101:
        return "invalid device ordinal";
    default:
        return "stand-in error";
    }
}

unsigned cudaMalloc(void **pointer, size_t size)
{
    make_context();
    *pointer = malloc(size > 0 ? size : 1);
    return *pointer != NULL ? 0 : 2;
}

unsigned cudaFree(void *pointer)
{
    make_context();
    free(pointer);
    return 0;
}

unsigned cudaMemcpy(void *to, const void *from, size_t size, unsigned kind)
{
    (void)kind;
    if (size > 0) {
        memcpy(to, from, size);
    }
    return 0;
}

unsigned cudaMemset(void *to, int byte, size_t size)
{
    memset(to, byte, size);
    return 0;
}

unsigned cudaStreamCreateWithFlags(stream_t *stream, unsigned flags)
{
    struct CUstream_st *made = calloc(1, sizeof(*made));

    (void)flags;
    make_context();
    if (made == NULL) {
        return 2;
    }
    (void)pthread_mutex_init(&made->mutex, NULL);
    (void)pthread_cond_init(&made->idle, NULL);
    *stream = made;
    return 0;
}

unsigned cudaStreamCreate(stream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, 0);
}

unsigned cudaStreamQuery(stream_t stream)
{
    bool idle;

    (void)pthread_mutex_lock(&stream->mutex);
    idle = stream->n_pending == 0;
    (void)pthread_mutex_unlock(&stream->mutex);
    return idle ? 0 : 600;
}

unsigned cudaStreamSynchronize(stream_t stream)
{
    (void)pthread_mutex_lock(&stream->mutex);
    while (stream->n_pending > 0) {
        (void)pthread_cond_wait(&stream->idle, &stream->mutex);
    }
    (void)pthread_mutex_unlock(&stream->mutex);
    return 0;
}

unsigned cudaMemcpyAsync(void *to, const void *from, size_t size, unsigned kind,
                         stream_t stream)
{
    (void)cudaStreamSynchronize(stream);
    return cudaMemcpy(to, from, size, kind);
}

unsigned cudaStreamDestroy(stream_t stream)
{
    (void)cudaStreamSynchronize(stream);
    (void)pthread_mutex_destroy(&stream->mutex);
    (void)pthread_cond_destroy(&stream->idle);
    free(stream);
    return 0;
}
