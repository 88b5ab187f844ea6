/*
 * The driver's two functions that tell a GPU's UUID.
 */
#include "tests/standin/standin.h"

unsigned cuDeviceGet(int *handle, int ordinal)
{
    *handle = ordinal;
    return 0;
}

unsigned cuDeviceGetUuid_v2(unsigned char *uuid, int handle)
{
    int number = script_int("STANDIN_CUDA", "uuid", -1);
    const char *at = getenv("CUDA_VISIBLE_DEVICES");
    int i;

    /* The handle's physical number. */
    for (i = 0; at != NULL && i < handle; i++) {
        at = strchr(at, ',');
        at = at != NULL ? at + 1 : NULL;
    }
    if (number < 0) {
        number = at != NULL ? atoi(at) : handle;
    }
    memset(uuid, 0, 16);
    uuid[14] = (unsigned char)((number + 1) >> 8);
    uuid[15] = (unsigned char)(number + 1);
    return 0;
}
