/*
 * A worker that says when it runs: "RANK ATTEMPT NANOSECONDS PID", then leaves,
 * or sleeps where it has an argument.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct timespec now;
    const char *rank = getenv("RANK");
    const char *attempt = getenv("TORCHELASTIC_RESTART_COUNT");

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    (void)printf("%s %s %lld %ld\n", rank != NULL ? rank : "0",
                 attempt != NULL ? attempt : "0",
                 (long long)now.tv_sec * 1000000000 + now.tv_nsec,
                 (long)getpid());
    (void)fflush(stdout);
    if (argc > 1) {
        (void)sleep((unsigned)atoi(argv[1]));
    }
    return 0;
}
