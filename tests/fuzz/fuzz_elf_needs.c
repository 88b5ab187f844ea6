/*
 * A file that claims to be a program.
 */
#include "launcher/elf_needs.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)elf_needs(data, size, "libmpi");
    return 0;
}
