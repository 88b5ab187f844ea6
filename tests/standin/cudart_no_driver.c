/*
 * A CUDA runtime on a machine without a driver, as the real one behaves
 * there: error 35 from every call that needs a device, driver version 0.
 * The file is installed as libcudart.so by the test that uses it.
 */
#define NO_DRIVER 35U

unsigned cudaGetDeviceCount(int *count);
unsigned cudaSetDevice(int device);
unsigned cudaGetDevice(int *device);
unsigned cudaDeviceGetPCIBusId(char *text, int len, int device);
unsigned cudaRuntimeGetVersion(int *version);
unsigned cudaDriverGetVersion(int *version);
const char *cudaGetErrorString(unsigned error);

unsigned cudaGetDeviceCount(int *count)
{
    *count = 0;
    return NO_DRIVER;
}

unsigned cudaSetDevice(int device)
{
    (void)device;
    return NO_DRIVER;
}

unsigned cudaGetDevice(int *device)
{
    *device = 0;
    return NO_DRIVER;
}

unsigned cudaDeviceGetPCIBusId(char *text, int len, int device)
{
    (void)len;
    (void)device;
    text[0] = '\0';
    return NO_DRIVER;
}

unsigned cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

unsigned cudaDriverGetVersion(int *version)
{
    *version = 0;
    return 0;
}

const char *cudaGetErrorString(unsigned error)
{
    return error == NO_DRIVER
               ? "CUDA driver version is insufficient for CUDA runtime version"
               : "no error";
}
