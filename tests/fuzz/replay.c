/*
 * Runs a fuzz target over files: what a plain build does with the corpus.
 * With no file it feeds an empty input, so that the target itself is tried.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    int i;

    (void)LLVMFuzzerTestOneInput(NULL, 0);
    for (i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        uint8_t *data;
        long size;

        if (file == NULL || fseek(file, 0, SEEK_END) != 0 ||
            (size = ftell(file)) < 0) {
            perror(argv[i]);
            return 1;
        }
        rewind(file);
        data = malloc((size_t)size + 1);
        if (data == NULL ||
            fread(data, 1, (size_t)size, file) != (size_t)size) {
            perror(argv[i]);
            return 1;
        }
        (void)fclose(file);
        (void)LLVMFuzzerTestOneInput(data, (size_t)size);
        free(data);
    }
    return 0;
}
