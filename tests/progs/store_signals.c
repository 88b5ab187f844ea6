/*
 * A timer's signal every millisecond, its handler without SA_RESTART, while the
 * store is used: store_signals CALLS. Says how long a wait in vain of a second
 * took, in milliseconds, and how many signals came.
 */
#include "worker/flaunch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static volatile sig_atomic_t n_signals;

static void count(int signo)
{
    (void)signo;
    n_signals++;
}

static long long now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void check(int rc, const struct flaunch_error *error)
{
    if (rc < 0) {
        (void)fprintf(stderr, "%s\n", error->text);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    const struct itimerval every = { .it_interval.tv_usec = 1000,
                                     .it_value.tv_usec = 1000 };
    struct sigaction action = { .sa_handler = count };
    static const char *const never[] = { "never" };
    struct flaunch_error error;
    struct flaunch_store *store;
    long long begin_ms;
    int n = argc > 1 ? atoi(argv[1]) : 20000;
    int i;

    (void)sigaction(SIGALRM, &action, NULL);
    (void)setitimer(ITIMER_REAL, &every, NULL);
    check(flaunch_store_connect(&store, NULL, 0, NULL, flaunch_deadline(60000),
                                &error),
          &error);
    for (i = 0; i < n; i++) {
        uint64_t deadline = flaunch_deadline(60000);
        char text[32];
        void *value;
        size_t len;
        int64_t sum;

        (void)snprintf(text, sizeof(text), "%d", i);
        check(
            flaunch_store_set(store, "k", text, strlen(text), deadline, &error),
            &error);
        check(flaunch_store_get(store, "k", &value, &len, deadline, &error),
              &error);
        if (strcmp(value, text) != 0) {
            (void)fprintf(stderr, "got %s for %s\n", (char *)value, text);
            return 1;
        }
        free(value);
        check(flaunch_store_add(store, "n", 1, &sum, deadline, &error), &error);
        if (sum != i + 1) {
            (void)fprintf(stderr, "counted %lld for %d\n", (long long)sum, i);
            return 1;
        }
    }
    begin_ms = now_ms();
    if (flaunch_store_wait(store, never, 1, flaunch_deadline(1000), &error) ==
        0) {
        return 1;
    }
    (void)printf("%lld %d\n", now_ms() - begin_ms, (int)n_signals);
    flaunch_store_close(store);
    return 0;
}
