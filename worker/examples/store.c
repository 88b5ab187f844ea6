/*
 * Ranks that meet at the store, without a collective: each takes the next piece
 * of work from a counter until all is done, and rank 0 prints who did what.
 * store [PIECES]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/flaunch.h"

#define LIMIT_MS 60000

static void check(int rc, const struct flaunch_error *error)
{
    if (rc < 0) {
        fprintf(stderr, "%s\n", error->text);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    int n_pieces = argc > 1 ? atoi(argv[1]) : 20;
    struct flaunch_error error;
    struct flaunch_store *store;
    struct flaunch *job;
    char report[64];
    int64_t piece;
    int n_mine = 0;
    int rank;

    check(flaunch_init(&job, NULL, &error), &error);
    rank = flaunch_rank(job);
    check(flaunch_store_connect(&store, NULL, 0, NULL,
                                flaunch_deadline(LIMIT_MS), &error),
          &error);
    for (;;) {
        check(flaunch_store_add(store, "next", 1, &piece,
                                flaunch_deadline(LIMIT_MS), &error),
              &error);
        if (piece > n_pieces) {
            break;
        }
        n_mine++; /* here the work would be done */
    }
    snprintf(report, sizeof(report), "rank %d: %d pieces", rank, n_mine);
    check(flaunch_store_queue_push(store, "reports", report, strlen(report),
                                   flaunch_deadline(LIMIT_MS), &error),
          &error);
    if (rank == 0) {
        for (int i = 0; i < flaunch_world_size(job); i++) {
            void *text;
            size_t len;

            check(flaunch_store_queue_pop(store, "reports", 1, &text, &len,
                                          flaunch_deadline(LIMIT_MS), &error),
                  &error);
            printf("%s\n", (char *)text);
            free(text);
        }
    }
    flaunch_store_close(store);
    flaunch_finalize(job);
    return 0;
}
