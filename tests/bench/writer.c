/*
 * Writes lines of 100 bytes: writer LINES [flush]. With flush, each by itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_LEN 100

int main(int argc, char **argv)
{
    long n = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    int flush = argc > 2 && strcmp(argv[2], "flush") == 0;
    char line[LINE_LEN];
    long i;

    memset(line, 'x', sizeof(line));
    line[LINE_LEN - 1] = '\n';
    for (i = 0; i < n; i++) {
        if (fwrite(line, 1, sizeof(line), stdout) != sizeof(line) ||
            (flush && fflush(stdout) != 0)) {
            return 1;
        }
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
