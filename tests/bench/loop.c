/*
 * The floor of a launch: start N of a program with posix_spawn and wait for
 * all of them. loop N PROGRAM
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int n = argc > 2 ? atoi(argv[1]) : 0;
    int i;

    if (n < 1) {
        (void)fprintf(stderr, "usage: loop N PROGRAM [ARGS]\n");
        return 2;
    }
    for (i = 0; i < n; i++) {
        pid_t pid;

        if (posix_spawn(&pid, argv[2], NULL, NULL, argv + 2, environ) != 0) {
            perror("posix_spawn");
            return 1;
        }
    }
    while (wait(NULL) > 0) {
    }
    return 0;
}
