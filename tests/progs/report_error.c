/*
 * Fails with a message for the launcher's report.
 */
#include <stdio.h>

#include "worker/flaunch.h"

int main(int argc, char **argv)
{
    struct flaunch_error error;

    if (argc < 2 || flaunch_report_error(argv[1], &error) < 0) {
        (void)fprintf(stderr, "%s\n", argc < 2 ? "no message" : error.text);
        return 2;
    }
    return 1;
}
