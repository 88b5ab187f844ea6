/*
 * Preloaded in front of the real NCCL: prints the unique ids that ranks make
 * and get, and passes the calls on.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char internal[128];
} id_t_;

static void print(const char *what, const id_t_ *id)
{
    char line[300];
    size_t len = (size_t)snprintf(line, sizeof(line), "%s ", what);
    size_t i;

    for (i = 0; i < sizeof(id->internal); i++) {
        len += (size_t)snprintf(line + len, sizeof(line) - len, "%02x",
                                (unsigned char)id->internal[i]);
    }
    line[len++] = '\n';
    (void)!write(1, line, len);
}

int ncclGetUniqueId(id_t_ *id)
{
    int (*next)(id_t_ *);
    int rc;

    *(void **)&next = dlsym(RTLD_NEXT, "ncclGetUniqueId");
    rc = next(id);
    if (rc == 0) {
        print("made", id);
    }
    return rc;
}

int ncclCommInitRankConfig(void **comm, int n_ranks, id_t_ id, int rank,
                           void *config)
{
    int (*next)(void **, int, id_t_, int, void *);

    *(void **)&next = dlsym(RTLD_NEXT, "ncclCommInitRankConfig");
    print("got", &id);
    return next(comm, n_ranks, id, rank, config);
}
