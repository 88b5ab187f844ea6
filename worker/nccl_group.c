#include "worker/nccl_group.h"

#include "common/clock.h"
#include "worker/alarm.h"
#include "common/dynlib.h"
#include "worker/fail.h"
#include "worker/nccl_env.h"
#include "worker/nccl_roots.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How often to see whether another rank has failed. */
#define LOOK_MS 250
/* Given up this much before the deadline, a quarter at most, so that all can be
 * told why. */
#define MARGIN_MS 2000
#define ABORT_MS 10000
#define CLOSE_MS 10000
#define KEY_MAX 160
#define NAMED_MAX 16

struct opening {
    struct nccl_group *group;
    const struct nccl_group_request *request;
    uint64_t started_ms;
    uint64_t give_up_ms;
    struct nccl_id *ids;
    int n_ids;
    bool told;    /* that this rank is through ncclCommInitRank */
    bool settled; /* error is the sentence that all ranks say */
    struct flaunch_error *error;
};

int nccl_group_load(struct nccl_group *group, const struct cuda_device *device,
                    struct flaunch_error *error)
{
    int rc = nccl_api_load(&group->context.nccl, error);

    if (rc < 0) {
        return rc;
    }
    group->context.cuda = device->api;
    group->context.device = device->device;
    (void)group->context.nccl.get_version(&group->version);
    dynlib_path((void *const *)&group->context.nccl.get_version, group->path,
                sizeof(group->path));
    return 0;
}

static void key_name(const struct opening *opening, const char *name, int i,
                     char key[KEY_MAX])
{
    (void)snprintf(key, KEY_MAX, "%s/%s/%d", opening->request->prefix, name, i);
}

/* Whether another rank has failed; its sentence is ours then. */
static bool another_failed(struct opening *opening)
{
    if (opening->request->client == NULL ||
        !alarm_heard(opening->request->client, opening->request->prefix,
                     opening->error, opening->request->deadline_ms)) {
        return false;
    }
    opening->settled = true;
    return true;
}

/* Get a value (value_out) or only wait for its key (NULL), with an ear for
 * other ranks' failures. */
static int await(struct opening *opening, const char *key,
                 struct buf *value_out, const char *in_vain)
{
    struct store_client *client = opening->request->client;
    struct err err;
    int rc;

    for (;;) {
        uint64_t until_ms =
            clock_earlier(clock_deadline(LOOK_MS), opening->give_up_ms);

        rc = value_out != NULL
                 ? store_client_get(client, key, until_ms, value_out, &err)
                 : store_client_wait(client, key, until_ms, &err);
        if (rc == 0) {
            return 0;
        }
        if (rc != -ETIMEDOUT || client->fd < 0) {
            return fail_store(opening->error, &err);
        }
        if (another_failed(opening)) {
            return opening->error->code;
        }
        if (clock_ms() >= opening->give_up_ms) {
            return fail_set(opening->error, FLAUNCH_NCCL, rc,
                            "%s within %.1f s", in_vain,
                            (double)(clock_ms() - opening->started_ms) / 1000);
        }
    }
}

/* --- the ids ----------------------------------------------------------------
 */

static int get_ids(struct opening *opening, const char *key, int n,
                   struct nccl_id *ids, const char *in_vain)
{
    struct buf value = { 0 };
    size_t len = (size_t)n * sizeof(*ids);
    int rc = await(opening, key, &value, in_vain);

    if (rc < 0) {
        return rc;
    }
    if (value.len == len) {
        memcpy(ids, value.data, len);
    } else {
        rc = fail_set(opening->error, FLAUNCH_NCCL, -EPROTO,
                      "the store holds %zu bytes of NCCL ids, and %zu are "
                      "expected",
                      value.len, len);
    }
    buf_destroy(&value);
    return rc;
}

static int set_ids(struct opening *opening, const char *key,
                   const struct nccl_id *ids, int n)
{
    struct bytes value = { (const uint8_t *)ids, (size_t)n * sizeof(*ids) };
    struct err err;

    return store_client_set(opening->request->client, key, value,
                            opening->request->deadline_ms, &err) < 0
               ? fail_store(opening->error, &err)
               : 0;
}

/* Rank 0: its own id, and those of the other roots, under one key. */
static int gather_ids(struct opening *opening, const char *all)
{
    char key[KEY_MAX];
    char in_vain[128];
    int rc = 0;
    int i;

    for (i = 1; i < opening->n_ids && rc == 0; i++) {
        key_name(opening, "root", i, key);
        (void)snprintf(
            in_vain, sizeof(in_vain),
            "rank %d passed the check-in and published no NCCL id",
            nccl_root_rank(i, opening->n_ids, opening->request->world_size));
        rc = get_ids(opening, key, 1, &opening->ids[i], in_vain);
    }
    return rc == 0 ? set_ids(opening, all, opening->ids, opening->n_ids) : rc;
}

/* A new id for each communicator and attempt: one is good for one use only. */
static int exchange_ids(struct opening *opening)
{
    const struct nccl_group_request *request = opening->request;
    int mine =
        nccl_root_index(request->rank, opening->n_ids, request->world_size);
    char key[KEY_MAX];
    char all[KEY_MAX];
    int rc = 0;

    if (mine >= 0) {
        rc = nccl_comm_make_id(&opening->group->context, opening->give_up_ms,
                               &opening->ids[mine], opening->error);
    }
    if (rc < 0 || request->client == NULL) {
        return rc;
    }
    key_name(opening, "ids", opening->n_ids, all);
    if (mine == 0) {
        return gather_ids(opening, all);
    }
    if (mine > 0) {
        key_name(opening, "root", mine, key);
        rc = set_ids(opening, key, &opening->ids[mine], 1);
    }
    return rc == 0 ? get_ids(opening, all, opening->n_ids, opening->ids,
                             "rank 0 passed the check-in and published no "
                             "NCCL id")
                   : rc;
}

/* --- the initialisation -----------------------------------------------------
 */

/* Once through ncclCommInitRank, say so: the others can tell who is not. */
static void tell_stage(struct opening *opening, enum nccl_stage stage)
{
    struct bytes nothing = { 0 };
    char key[KEY_MAX];

    if (stage == NCCL_STAGE_INIT || opening->told ||
        opening->request->client == NULL) {
        return;
    }
    opening->told = true;
    key_name(opening, "stage", opening->request->rank, key);
    (void)store_client_set(opening->request->client, key, nothing,
                           opening->request->deadline_ms, NULL);
}

/* Append the ranks that have told their stage, or have not. */
static void list_ranks(const struct opening *opening, bool told, char *text,
                       size_t size)
{
    size_t len = 0;
    int n = 0;
    int i;

    text[0] = '\0';
    for (i = 0; i < opening->request->world_size; i++) {
        bool is_there = false;
        char key[KEY_MAX];

        key_name(opening, "stage", i, key);
        if (store_client_check(opening->request->client, key,
                               opening->request->deadline_ms, &is_there,
                               NULL) < 0 ||
            is_there != told || ++n > NAMED_MAX) {
            continue;
        }
        len += (size_t)snprintf(text + len, size - len, "%s%d",
                                n > 1 ? ", " : "", i);
    }
    if (n > NAMED_MAX) {
        (void)snprintf(text + len, size - len, " and %d more", n - NAMED_MAX);
    }
    if (n == 0) {
        (void)snprintf(text, size, "none");
    }
}

static int timed_out(struct opening *opening)
{
    double seconds = (double)(clock_ms() - opening->started_ms) / 1000;
    char behind[256] = "0";
    char ahead[256] = "none";

    if (opening->request->client != NULL) {
        list_ranks(opening, false, behind, sizeof(behind));
        list_ranks(opening, true, ahead, sizeof(ahead));
    }
    return fail_set(opening->error, FLAUNCH_NCCL, -ETIMEDOUT,
                    "NCCL did not come up within %.1f s: in "
                    "ncclCommInitRank: ranks %s; in the first all-reduce or "
                    "done: ranks %s",
                    seconds, behind, ahead);
}

/* Wait for our own initialisation, with an ear for the others. */
static int follow(struct opening *opening, struct nccl_init *init)
{
    for (;;) {
        bool ended =
            nccl_init_wait(init, clock_earlier(clock_deadline(LOOK_MS),
                                               opening->give_up_ms)) == 0;

        if (ended && nccl_init_failed(init, opening->error)) {
            return opening->error->code;
        }
        if (ended) {
            return 0;
        }
        tell_stage(opening, nccl_init_stage(init));
        if (another_failed(opening)) {
            return opening->error->code;
        }
        if (clock_ms() >= opening->give_up_ms) {
            return timed_out(opening);
        }
    }
}

/* All are through: whoever comes last says so. */
static int wait_for_all(struct opening *opening)
{
    const struct nccl_group_request *request = opening->request;
    struct bytes nothing = { 0 };
    char key[KEY_MAX];
    struct err err;
    int64_t n;

    if (request->client == NULL) {
        return 0;
    }
    key_name(opening, "n_ready", 0, key);
    if (store_client_add(request->client, key, 1, request->deadline_ms, &n,
                         &err) < 0) {
        return fail_store(opening->error, &err);
    }
    key_name(opening, "ready", 0, key);
    if (n == request->world_size) {
        return store_client_set(request->client, key, nothing,
                                request->deadline_ms, &err) < 0
                   ? fail_store(opening->error, &err)
                   : 0;
    }
    return await(opening, key, NULL,
                 "not all ranks finished NCCL's first "
                 "all-reduce");
}

/* Make what went wrong here a sentence of this rank and tell it; where others
 * were first, take theirs. Returns its code. */
static int settle_failure(struct opening *opening)
{
    const struct nccl_group_request *request = opening->request;
    const struct nccl_group *group = opening->group;
    char why[512];
    char notes[300] = "";

    if (opening->settled) {
        return opening->error->code;
    }
    opening->settled = true;
    nccl_env_notes("; ", notes, sizeof(notes));
    (void)snprintf(why, sizeof(why), "%.500s", opening->error->text);
    (void)fail_set(opening->error, opening->error->domain, opening->error->code,
                   "rank %d on %.100s: %s; %sNCCL %d.%d.%d (%.100s), cuda:%d",
                   request->rank, request->host, why, notes,
                   group->version / 10000, group->version / 100 % 100,
                   group->version % 100, group->path, group->context.device);
    if (request->client != NULL) {
        alarm_raise(request->client, request->prefix, opening->error,
                    request->deadline_ms);
    }
    return opening->error->code;
}

static int initialize(struct opening *opening)
{
    const struct nccl_group_request *request = opening->request;
    struct nccl_init *init;
    int rc = nccl_init_start(&opening->group->context, request->rank,
                             request->world_size, opening->ids, opening->n_ids,
                             &init, opening->error);
    int finished;

    if (rc < 0) {
        return settle_failure(opening);
    }
    rc = follow(opening, init);
    if (rc == 0) {
        rc = wait_for_all(opening);
    }
    if (rc < 0) {
        rc = settle_failure(opening); /* the abort may take long */
    }
    finished = nccl_init_finish(init, rc == 0, ABORT_MS, &opening->group->comm);
    if (finished < 0) {
        size_t len = strlen(opening->error->text);

        (void)snprintf(opening->error->text + len,
                       sizeof(opening->error->text) - len,
                       "; NCCL does not come back from its abort: end this "
                       "process with _exit");
        opening->error->code = rc = finished;
    }
    return rc;
}

int nccl_group_open(struct nccl_group *group,
                    const struct nccl_group_request *request,
                    struct flaunch_error *error)
{
    struct opening opening = { .group = group,
                               .request = request,
                               .started_ms = clock_ms(),
                               .error = error };
    uint64_t margin_ms;
    int rc;

    margin_ms = (uint64_t)clock_poll_ms(request->deadline_ms) / 4;
    opening.give_up_ms =
        request->deadline_ms - clock_earlier(margin_ms, MARGIN_MS);
    opening.n_ids = group->context.nccl.comm_init_rank_scalable == NULL ||
                            getenv("NCCL_COMM_ID") != NULL
                        ? 1
                        : nccl_roots_count(request->world_size);
    opening.ids = calloc((size_t)opening.n_ids, sizeof(*opening.ids));
    if (opening.ids == NULL) {
        return fail_set(error, FLAUNCH_SYSTEM, -ENOMEM, "out of memory");
    }
    rc = exchange_ids(&opening);
    rc = rc < 0 ? settle_failure(&opening) : initialize(&opening);
    free(opening.ids);
    return rc;
}

/* --- afterwards -----------------------------------------------------------
 */

int nccl_group_split(struct nccl_group *group, int color, int key,
                     uint64_t deadline_ms, void **comm_out,
                     struct flaunch_error *error)
{
    struct nccl_split *splits =
        realloc(group->splits, (group->n_splits + 1) * sizeof(*splits));
    struct ncclComm *comm = NULL;
    int rc;

    if (splits == NULL) {
        return fail_set(error, FLAUNCH_SYSTEM, -ENOMEM, "out of memory");
    }
    group->splits = splits;
    rc = nccl_comm_split(&group->context, group->comm, color, key, deadline_ms,
                         &comm, error);
    if (rc < 0) {
        group->broken = true;
        return rc;
    }
    if (comm != NULL) {
        group->splits[group->n_splits++].comm = comm;
    }
    *comm_out = comm;
    return 0;
}

void nccl_group_close(struct nccl_group *group)
{
    while (group->n_splits > 0) {
        nccl_comm_close(&group->context, group->splits[--group->n_splits].comm,
                        group->broken, CLOSE_MS);
    }
    free(group->splits);
    group->splits = NULL;
    if (group->comm != NULL) {
        nccl_comm_close(&group->context, group->comm, group->broken, CLOSE_MS);
    }
    group->comm = NULL;
}
