/*
 * PMIx: Open MPI, PRRTE, Slurm with --mpi=pmix, jsrun. Its library is loaded;
 * each of its calls may hang, so each runs on a helper thread.
 */
#include "worker/meet.h"

#include "common/helper.h"
#include "worker/pmix_api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum call {
    CALL_OPEN, /* initialise; read what the environment left open */
    CALL_PUT,
    CALL_FENCE,
    CALL_GET,
    CALL_CLOSE,
};

static const char *const call_names[] = { "PMIx_Init", "PMIx_Put", "PMIx_Fence",
                                          "PMIx_Get", "PMIx_Finalize" };

struct pmix {
    struct pmix_api api;
    struct pmix_api_proc self;
};

/* One call with its arguments and results, so that nothing of the caller's is
 * touched once it has given up. */
struct task {
    enum call call;
    struct pmix pmix;
    char key[64];
    char value[MEET_VALUE_MAX];
    int world_size;
    int local_rank;
    int local_world_size;
    int status; /* PMIx's */
};

/* A value as an integer, of whatever width it came; -1 for others. */
static int64_t as_number(const struct pmix_api_value *value)
{
    switch (value->type) {
    case PMIX_API_SIZE:
        return (int64_t)value->data.size;
    case PMIX_API_INT:
        return value->data.integer;
    case PMIX_API_INT32:
        return value->data.int32;
    case PMIX_API_UINT:
        return value->data.unsigned_integer;
    case PMIX_API_UINT16:
        return value->data.uint16;
    case PMIX_API_UINT32:
        return value->data.uint32;
    case PMIX_API_UINT64:
        return (int64_t)value->data.uint64;
    default:
        return -1;
    }
}

static int get_number(const struct pmix *pmix, uint32_t rank, const char *key,
                      int unknown)
{
    struct pmix_api_proc proc = pmix->self;
    struct pmix_api_value *value = NULL;
    int64_t number;

    proc.rank = rank;
    if (pmix->api.get(&proc, key, NULL, 0, &value) != PMIX_API_OK ||
        value == NULL) {
        return unknown;
    }
    number = as_number(value);
    free(value);
    return number >= 0 && number < INT32_MAX ? (int)number : unknown;
}

static void run_open(struct task *task)
{
    struct pmix *pmix = &task->pmix;

    task->status = pmix->api.init(&pmix->self, NULL, 0);
    if (task->status != PMIX_API_OK) {
        return;
    }
    task->world_size = get_number(pmix, PMIX_API_RANK_WILDCARD,
                                  PMIX_API_JOB_SIZE, task->world_size);
    task->local_world_size =
        get_number(pmix, PMIX_API_RANK_WILDCARD, PMIX_API_LOCAL_SIZE,
                   task->local_world_size);
    task->local_rank = get_number(pmix, pmix->self.rank, PMIX_API_LOCAL_RANK,
                                  task->local_rank);
}

static void run_put(struct task *task)
{
    struct pmix_api_value value = { .type = PMIX_API_STRING };

    value.data.string = task->value;
    task->status = task->pmix.api.put(PMIX_API_GLOBAL, task->key, &value);
    if (task->status == PMIX_API_OK) {
        task->status = task->pmix.api.commit();
    }
}

static void run_fence(struct task *task)
{
    struct pmix_api_info collect = { .key = PMIX_API_COLLECT,
                                     .value = { .type = PMIX_API_BOOL } };

    collect.value.data.flag = true;
    task->status = task->pmix.api.fence(NULL, 0, &collect, 1);
}

static void run_get(struct task *task)
{
    struct pmix_api_proc root = task->pmix.self;
    struct pmix_api_value *value = NULL;

    root.rank = 0;
    task->status = task->pmix.api.get(&root, task->key, NULL, 0, &value);
    if (task->status != PMIX_API_OK || value == NULL) {
        return;
    }
    if (value->type == PMIX_API_STRING && value->data.string != NULL) {
        (void)snprintf(task->value, sizeof(task->value), "%s",
                       value->data.string);
        free(value->data.string);
    }
    free(value);
}

static void task_run(void *arg)
{
    struct task *task = arg;

    switch (task->call) {
    case CALL_OPEN:
        run_open(task);
        break;
    case CALL_PUT:
        run_put(task);
        break;
    case CALL_FENCE:
        run_fence(task);
        break;
    case CALL_GET:
        run_get(task);
        break;
    case CALL_CLOSE:
        task->status = task->pmix.api.finalize(NULL, 0);
        break;
    }
}

/* Run one call to its end or the deadline; task gets what it came to. */
static int run(struct task *task, uint64_t deadline_ms, struct err *err)
{
    struct task *copy = malloc(sizeof(*copy));
    const char *name = call_names[task->call];
    struct helper *helper;
    int rc;

    if (copy == NULL) {
        return err_sys(err, -ENOMEM, "%s", name);
    }
    *copy = *task;
    rc = helper_start(task_run, free, copy, &helper);
    if (rc < 0) {
        free(copy);
        return err_sys(err, rc, "%s", name);
    }
    rc = helper_wait(helper, deadline_ms);
    if (rc == 0) {
        *task = *copy;
    }
    helper_release(helper);
    if (rc < 0) {
        return err_set(err, rc, "%s does not come back%s", name,
                       task->call == CALL_FENCE ? ": not all ranks came to it"
                                                : "");
    }
    if (task->status != PMIX_API_OK) {
        return err_set(err, -EIO, "%s: %s (%d)", name,
                       task->pmix.api.error_string(task->status), task->status);
    }
    return 0;
}

static struct task task_of(const struct meet *meet, enum call call)
{
    return (struct task){ .call = call,
                          .pmix = *(const struct pmix *)meet->state };
}

static int pmix_put(struct meet *meet, const char *key, const char *value,
                    uint64_t deadline_ms, struct err *err)
{
    struct task task = task_of(meet, CALL_PUT);

    (void)snprintf(task.key, sizeof(task.key), "%s", key);
    (void)snprintf(task.value, sizeof(task.value), "%s", value);
    return run(&task, deadline_ms, err);
}

static int pmix_fence(struct meet *meet, uint64_t deadline_ms, struct err *err)
{
    struct task task = task_of(meet, CALL_FENCE);

    return run(&task, deadline_ms, err);
}

static int pmix_get(struct meet *meet, const char *key, char *value_out,
                    size_t size, uint64_t deadline_ms, struct err *err)
{
    struct task task = task_of(meet, CALL_GET);
    int rc;

    (void)snprintf(task.key, sizeof(task.key), "%s", key);
    rc = run(&task, deadline_ms, err);
    if (rc == 0) {
        (void)snprintf(value_out, size, "%s", task.value);
    }
    return rc;
}

static void pmix_close(struct meet *meet, uint64_t deadline_ms)
{
    struct task task = task_of(meet, CALL_CLOSE);

    (void)run(&task, deadline_ms, NULL);
    free(meet->state);
}

static const struct meet_ops pmix_ops = { pmix_put, pmix_fence, pmix_get,
                                          pmix_close };

static int fill_in(struct detected *detected, const struct task *task,
                   struct err *err)
{
    uint32_t rank = task->pmix.self.rank;

    if (detected->world_size == 0) {
        detected->world_size = task->world_size;
    }
    if (detected->local_rank < 0) {
        detected->local_rank = task->local_rank;
    }
    if (detected->local_world_size == 0) {
        detected->local_world_size = task->local_world_size;
    }
    if (rank != (uint32_t)detected->rank ||
        detected->world_size != task->world_size ||
        detected->rank >= detected->world_size) {
        return err_set(err, -EINVAL,
                       "PMIx says rank %u of %d, and the environment rank %d "
                       "of %d",
                       rank, task->world_size, detected->rank,
                       detected->world_size);
    }
    return 0;
}

bool meet_pmix_is_there(void)
{
    struct pmix_api api;

    return pmix_api_load(&api, NULL) == 0;
}

int meet_pmix_open(struct meet *meet, struct detected *detected,
                   uint64_t deadline_ms, struct err *err)
{
    struct task task = { .call = CALL_OPEN, .local_rank = -1 };
    struct pmix *pmix;
    int rc = pmix_api_load(&task.pmix.api, err);

    if (rc < 0) {
        return rc;
    }
    pmix = malloc(sizeof(*pmix));
    if (pmix == NULL) {
        return err_sys(err, -ENOMEM, "PMIx");
    }
    rc = run(&task, deadline_ms, err);
    if (rc < 0) {
        free(pmix);
        return rc;
    }
    *pmix = task.pmix;
    *meet = (struct meet){ .ops = &pmix_ops, .state = pmix };
    rc = fill_in(detected, &task, err);
    if (rc < 0) {
        meet_close(meet, deadline_ms);
    }
    return rc;
}
