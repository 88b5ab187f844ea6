#include "worker/cuda_device.h"

#include "common/helper.h"
#include "common/dynlib.h"
#include "worker/fail.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 256

/* Holds copies of all that the caller gave: it may outlive the call. */
struct task {
    struct device_request request;
    char visible[TEXT_MAX];
    char binding[TEXT_MAX];
    struct cuda_device device;
    int rc;
    struct flaunch_error error;
};

/* What people usually meet behind an error. */
static const char *hint(cuda_error rc, int driver_version)
{
    switch (rc) {
    case CUDA_INITIALIZATION_ERROR:
        return " (a process that used CUDA was forked, or the driver is "
               "broken)";
    case CUDA_STUB_LIBRARY:
        return " (the toolkit's stub of libcuda is in LD_LIBRARY_PATH)";
    case CUDA_INSUFFICIENT_DRIVER:
        return driver_version == 0 ? " (no NVIDIA driver is loaded here)"
                                   : " (the driver is older than the runtime)";
    case CUDA_DEVICES_UNAVAILABLE:
        return " (another process has it for itself)";
    case CUDA_SYSTEM_NOT_READY:
        return " (the fabric manager is not up)";
    case CUDA_SYSTEM_DRIVER_MISMATCH:
        return " (the driver was upgraded without a restart, or a container "
               "brings another libcuda)";
    default:
        return "";
    }
}

static int cuda_failed(struct task *task, cuda_error rc, const char *what)
{
    const struct cuda_api *api = &task->device.api;

    return fail_set(&task->error, FLAUNCH_CUDA, -ENODEV,
                    "%s: CUDA error %u: %s%s; driver %d, runtime %d, "
                    "CUDA_VISIBLE_DEVICES=%s",
                    what, rc, api->get_error_string(rc),
                    hint(rc, task->device.driver_version),
                    task->device.driver_version, task->device.runtime_version,
                    task->request.visible != NULL ? task->visible
                                                  : "(not set)");
}

/* Whether an error of the count means no more than that there is no GPU. */
static bool means_none(const struct task *task, cuda_error rc)
{
    if (rc == CUDA_INSUFFICIENT_DRIVER) {
        return task->device.driver_version == 0;
    }
    return rc == CUDA_NO_DEVICE &&
           (task->request.visible == NULL || device_all_hidden(task->visible));
}

static int count(struct task *task)
{
    struct cuda_device *device = &task->device;
    int n = 0;
    cuda_error rc;

    (void)device->api.runtime_get_version(&device->runtime_version);
    /* Version 0 tells "no driver" from "driver too old". */
    (void)device->api.driver_get_version(&device->driver_version);
    rc = device->api.get_device_count(&n);
    if (rc != CUDA_OK && !means_none(task, rc)) {
        return cuda_failed(task, rc, "counting GPUs");
    }
    if (rc != CUDA_OK) {
        (void)snprintf(device->why_none, sizeof(device->why_none),
                       "CUDA error %u: %s%s", rc,
                       device->api.get_error_string(rc),
                       hint(rc, device->driver_version));
    }
    device->n_visible = task->request.n_gpus = rc == CUDA_OK ? n : 0;
    if (rc == CUDA_OK && n == 0) {
        (void)snprintf(device->why_none, sizeof(device->why_none),
                       "CUDA counts none");
    }
    return 0;
}

/* The UUID is the driver's to tell; a slice of a GPU has one of its own. */
static void read_uuid(struct cuda_device *device)
{
    static const char *const names[] = { "libcuda.so.1", NULL };
    unsigned (*get)(int *, int) = NULL;
    unsigned (*get_uuid)(unsigned char *, int) = NULL;
    const struct dynlib_symbol symbols[] = {
        { "cuDeviceGet", (void **)&get, false },
        { "cuDeviceGetUuid_v2", (void **)&get_uuid, false },
        { NULL, NULL, false },
    };
    unsigned char raw[16];
    void *library;
    char why[64];
    int handle;
    size_t len;
    size_t i;

    device->uuid[0] = '\0';
    if (dynlib_load(names, symbols, &library, why, sizeof(why)) < 0 ||
        get(&handle, device->device) != 0 || get_uuid(raw, handle) != 0) {
        return;
    }
    len = (size_t)snprintf(device->uuid, sizeof(device->uuid), "GPU-");
    for (i = 0; i < sizeof(raw); i++) {
        len += (size_t)snprintf(
            device->uuid + len, sizeof(device->uuid) - len, "%s%02x",
            i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", raw[i]);
    }
}

/* cudaFree(0) makes the context: until then nothing shows that it works. */
static int open_device(struct task *task)
{
    struct cuda_device *device = &task->device;
    const struct cuda_api *api = &device->api;
    char what[64];
    cuda_error rc;

    (void)snprintf(what, sizeof(what), "CUDA device %d", device->device);
    rc = api->set_device(device->device);
    if (rc == CUDA_OK) {
        rc = api->free(NULL);
    }
    if (rc == CUDA_OK) {
        rc = api->device_get_pci_bus_id(device->pci, (int)sizeof(device->pci),
                                        device->device);
    }
    if (rc != CUDA_OK) {
        return cuda_failed(task, rc, what);
    }
    read_uuid(device);
    return 0;
}

static void task_run(void *arg)
{
    struct task *task = arg;

    task->rc = count(task);
    if (task->rc == 0) {
        task->rc =
            device_choose(&task->request, &task->device.device, &task->error);
    }
    if (task->rc == 0 && task->device.device != DEVICE_CPU) {
        task->rc = open_device(task);
    }
}

/* A copy of text, which may be NULL. */
static const char *copy_text(char copy[TEXT_MAX], const char *text)
{
    if (text == NULL) {
        return NULL;
    }
    (void)snprintf(copy, TEXT_MAX, "%s", text);
    return copy;
}

static struct task *task_create(const struct device_request *request,
                                const struct cuda_api *api)
{
    struct task *task = calloc(1, sizeof(*task));

    if (task == NULL) {
        return NULL;
    }
    task->request = *request;
    task->device.api = *api;
    task->device.device = DEVICE_CPU;
    task->request.visible = copy_text(task->visible, request->visible);
    task->request.binding = copy_text(task->binding, request->binding);
    return task;
}

/* The current device is a thread's own: ours gets it too. */
static int finish(struct cuda_device *device_out, const struct task *task,
                  struct flaunch_error *error)
{
    if (task->rc < 0) {
        return fail_set(error, task->error.domain, task->rc, "%s",
                        task->error.text);
    }
    *device_out = task->device;
    if (task->device.device != DEVICE_CPU) {
        (void)task->device.api.set_device(task->device.device);
    }
    return 0;
}

int cuda_device_open(struct cuda_device *device_out,
                     const struct device_request *request, uint64_t deadline_ms,
                     struct flaunch_error *error)
{
    struct flaunch_error why = { 0 };
    struct helper *helper;
    struct cuda_api api;
    struct task *task;
    int rc;

    *device_out = (struct cuda_device){ .device = DEVICE_CPU };
    if (cuda_api_load(&api, &why) < 0) {
        (void)snprintf(device_out->why_none, sizeof(device_out->why_none),
                       "%.255s", why.text);
        return 0;
    }
    task = task_create(request, &api);
    rc = task == NULL ? -ENOMEM : helper_start(task_run, free, task, &helper);
    if (rc < 0) {
        free(task);
        return fail_set(error, FLAUNCH_SYSTEM, rc, "out of memory or threads");
    }
    rc = helper_wait(helper, deadline_ms);
    rc = rc < 0 ? fail_set(error, FLAUNCH_CUDA, rc,
                           "the CUDA driver hangs: opening the GPU of local "
                           "rank %d does not come back",
                           request->local_rank)
                : finish(device_out, task, error);
    helper_release(helper);
    return rc;
}
