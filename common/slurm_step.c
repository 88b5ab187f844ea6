#include "common/slurm_step.h"

#include "common/hostlist.h"
#include "common/parse.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ids from here on are no steps: interactive, batch, extern, pending. */
#define STEP_RESERVED 0xfffffff0LL
/* Below the ports the kernel gives out by default. */
#define PORT_FIRST 15000
#define PORT_RANGE 16384

struct reading {
    const struct environ_view *view;
    struct slurm_step *step;
    char *why;
    size_t why_size;
};

static enum environ_result no_step(const struct reading *reading,
                                   const char *text)
{
    (void)snprintf(reading->why, reading->why_size, "%s", text);
    return ENVIRON_MISSING;
}

static enum environ_result read_int(const struct reading *reading,
                                    const char *name, int64_t min, int64_t max,
                                    int *value_out)
{
    return environ_int(reading->view, name, min, max, value_out, reading->why,
                       reading->why_size);
}

/* Whether a real step has this id. */
static enum environ_result check_id(const struct reading *reading)
{
    const char *text = environ_get(reading->view, "SLURM_STEP_ID");
    int64_t id;

    if (text == NULL) {
        return no_step(reading,
                       environ_get(reading->view, "SLURM_JOB_ID") != NULL
                           ? "an allocation and no step (SLURM_STEP_ID is not "
                             "set): a batch script or a shell; srun starts the "
                             "tasks"
                           : "no SLURM_STEP_ID");
    }
    if (parse_int(text, 0, UINT32_MAX, &id) < 0) {
        (void)snprintf(reading->why, reading->why_size,
                       "SLURM_STEP_ID=%.32s is no step's number", text);
        return ENVIRON_BAD;
    }
    if (id >= STEP_RESERVED) {
        return no_step(reading, "an interactive or batch step; srun starts the "
                                "tasks");
    }
    return ENVIRON_OK;
}

/* Rank and size. A step over several components of a heterogeneous job counts
 * all tasks in SLURM_NTASKS only. */
static enum environ_result read_ranks(const struct reading *reading)
{
    bool het = environ_get(reading->view, "SLURM_HET_SIZE") != NULL;
    struct slurm_step *step = reading->step;
    enum environ_result result;
    int n_tasks;

    result = read_int(reading, het ? "SLURM_NTASKS" : "SLURM_STEP_NUM_TASKS", 1,
                      INT_MAX, &step->world_size);
    if (result != ENVIRON_OK) {
        return result;
    }
    if (!het && environ_get(reading->view, "SLURM_NTASKS") != NULL) {
        result = read_int(reading, "SLURM_NTASKS", 1, INT_MAX, &n_tasks);
        if (result != ENVIRON_OK) {
            return result;
        }
        if (n_tasks != step->world_size) {
            return no_step(reading,
                           "SLURM_NTASKS and SLURM_STEP_NUM_TASKS differ: the "
                           "step holds another launcher's daemons, or srun -E "
                           "kept older values");
        }
    }
    result =
        read_int(reading, "SLURM_PROCID", 0, step->world_size - 1, &step->rank);
    if (result == ENVIRON_OK) {
        result = read_int(reading, "SLURM_LOCALID", 0, step->world_size - 1,
                          &step->local_rank);
    }
    return result;
}

/* This node's ranks in SLURM_GTIDS: how many, and where ours stands or -1. */
static int gtids_count(const char *text, int rank, int *position_out)
{
    const char *item;
    size_t len;
    int n = 0;

    *position_out = -1;
    while (parse_list_next(&text, &item, &len)) {
        if (strtol(item, NULL, 10) == rank) {
            *position_out = n;
        }
        n++;
    }
    return n;
}

static enum environ_result read_local_size(const struct reading *reading)
{
    const char *gtids = environ_get(reading->view, "SLURM_GTIDS");
    const char *counts =
        environ_get(reading->view, "SLURM_STEP_TASKS_PER_NODE");
    struct slurm_step *step = reading->step;
    int64_t count;
    int node;
    int position;
    int n;

    if (gtids != NULL && environ_get(reading->view, "SLURM_HET_SIZE") == NULL) {
        n = gtids_count(gtids, step->rank, &position);
        if (position != step->local_rank) {
            return no_step(reading, "SLURM_GTIDS does not list SLURM_PROCID at "
                                    "SLURM_LOCALID");
        }
        step->local_world_size = n;
        return ENVIRON_OK;
    }
    if (counts != NULL &&
        read_int(reading, "SLURM_NODEID", 0, INT_MAX, &node) == ENVIRON_OK &&
        hostlist_count_at(counts, node, &count) == 0 &&
        count > step->local_rank && count <= step->world_size) {
        step->local_world_size = (int)count;
    }
    return ENVIRON_OK;
}

/* FNV-1a: the same on every node, and different for neighbours. */
static uint32_t hash_text(const char *text)
{
    uint32_t hash = 2166136261U;

    for (; *text != '\0'; text++) {
        hash = (hash ^ (uint8_t)*text) * 16777619U;
    }
    return hash;
}

static const char *or_none(const struct environ_view *view, const char *name)
{
    const char *text = environ_get(view, name);

    return text != NULL ? text : "0";
}

/* "12000-12003": what Slurm has set apart for this step. */
static bool read_reserved(const struct environ_view *view,
                          struct slurm_step *step)
{
    const char *text = environ_get(view, "SLURM_STEP_RESV_PORTS");
    char *end;
    long low;
    long high;

    if (text == NULL) {
        return false;
    }
    low = strtol(text, &end, 10);
    high = *end == '-' ? strtol(end + 1, NULL, 10) : low;
    if (low < 1 || high < low || high > 65535) {
        return false;
    }
    step->port = (uint16_t)low;
    step->n_ports = (uint16_t)(high - low + 1);
    return true;
}

static void find_place(const struct reading *reading)
{
    const struct environ_view *view = reading->view;
    const char *nodes = environ_get(view, "SLURM_STEP_NODELIST");
    struct slurm_step *step = reading->step;

    if (nodes == NULL || hostlist_first(nodes, step->first_host) < 0) {
        step->first_host[0] = '\0';
    }
    (void)snprintf(
        step->token, sizeof(step->token), "slurm/%.24s.%.16s/%.16s/%.8s",
        or_none(view, "SLURM_JOB_ID"), or_none(view, "SLURM_STEP_ID"),
        or_none(view, "SLURM_JOB_UID"), or_none(view, "SLURM_RESTART_COUNT"));
    if (!read_reserved(view, step)) {
        step->port =
            (uint16_t)(PORT_FIRST + hash_text(step->token) % PORT_RANGE);
        step->n_ports = SLURM_PORT_TRIES;
    }
}

enum environ_result slurm_step_read(const struct environ_view *view,
                                    struct slurm_step *step_out, char *why,
                                    size_t why_size)
{
    struct slurm_step step = { 0 };
    struct reading reading = { .view = view, .step = &step };
    enum environ_result result;

    reading.why = why;
    reading.why_size = why_size;
    result = check_id(&reading);

    if (result == ENVIRON_OK) {
        result = read_ranks(&reading);
    }
    if (result == ENVIRON_OK) {
        result = read_local_size(&reading);
    }
    if (result == ENVIRON_OK) {
        find_place(&reading);
        *step_out = step;
    }
    return result;
}
