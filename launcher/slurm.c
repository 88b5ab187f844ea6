#include "launcher/slurm.h"

#include "common/env_names.h"
#include "common/parse.h"
#include "common/slurm_step.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static uint32_t number(const struct environ_view *view, const char *name)
{
    const char *text = environ_get(view, name);
    int64_t n;

    return text != NULL && parse_int(text, 0, INT_MAX, &n) == 0 ? (uint32_t)n
                                                                : 0;
}

static const char *text_of(const struct environ_view *view, const char *name)
{
    const char *text = environ_get(view, name);

    return text != NULL ? text : "";
}

/* "name:address:hostname,...": where a node's name is no host name. */
static void apply_alias(const struct environ_view *view,
                        struct slurm_hint *hint)
{
    const char *cursor = text_of(view, "SLURM_NODE_ALIASES");
    size_t name_len = strlen(hint->host);
    const char *item;
    size_t len;

    while (name_len > 0 && parse_list_next(&cursor, &item, &len)) {
        const char *address = item + name_len + 1;
        size_t address_len;

        if (len <= name_len + 1 || item[name_len] != ':' ||
            memcmp(item, hint->host, name_len) != 0) {
            continue;
        }
        address_len = strcspn(address, ":,");
        if (address_len > 0 && address_len < sizeof(hint->host)) {
            memmove(hint->host, address, address_len);
            hint->host[address_len] = '\0';
            return;
        }
    }
}

/* No task of a step: a batch script, or a shell of salloc. */
static void refuse_allocation(const struct environ_view *view,
                              struct slurm_hint *hint)
{
    uint32_t n_nodes = number(view, "SLURM_JOB_NUM_NODES");

    if (n_nodes > 1) {
        (void)snprintf(
            hint->refuse, sizeof(hint->refuse),
            "Slurm job %.32s has %u nodes, and this flaunch runs on one of "
            "them: start it on all with 'srun --nodes=%u --ntasks-per-node=1 "
            "flaunch ...', or say --nnodes=1",
            text_of(view, "SLURM_JOB_ID"), n_nodes, n_nodes);
    }
}

static void refuse_tasks(const struct environ_view *view, uint32_t n_nodes,
                         int n_tasks, struct slurm_hint *hint)
{
    char here[32] = "several";

    if (n_tasks > 1) {
        (void)snprintf(here, sizeof(here), "%d", n_tasks);
    }
    (void)snprintf(
        hint->refuse, sizeof(hint->refuse),
        "srun has started %s flaunch on this node (step %.32s.%.16s), and one "
        "starts all workers of a node: use 'srun --nodes=%u "
        "--ntasks-per-node=1 flaunch --nproc-per-node=%s ...', or say "
        "--nnodes=1 for jobs of one node each",
        here, text_of(view, "SLURM_JOB_ID"), text_of(view, "SLURM_STEP_ID"),
        n_nodes, n_tasks > 1 ? here : "N");
}

void slurm_read(const struct environ_view *view, struct slurm_hint *hint_out)
{
    struct slurm_hint hint = { .n_gpus = number(view, "SLURM_GPUS_ON_NODE") };
    struct slurm_step step;
    char why[256];

    if (environ_is_set(view, ENV_FLAUNCH_RUN_ID)) {
        /* A worker of another flaunch, which has used up what Slurm says. */
        *hint_out = (struct slurm_hint){ .usable = false };
        return;
    }
    if (slurm_step_read(view, &step, why, sizeof(why)) != ENVIRON_OK) {
        hint.n_gpus = 0; /* the allocation's, perhaps on another node */
        refuse_allocation(view, &hint);
        *hint_out = hint;
        return;
    }
    hint.n_nodes = number(view, "SLURM_STEP_NUM_NODES");
    if (hint.n_nodes == 0) {
        hint.n_nodes = number(view, "SLURM_NNODES");
    }
    hint.node_rank = number(view, "SLURM_NODEID");
    if (step.local_world_size > 1 ||
        (uint32_t)step.world_size != hint.n_nodes) {
        refuse_tasks(view, hint.n_nodes, step.local_world_size, &hint);
        *hint_out = hint;
        return;
    }
    hint.usable = hint.node_rank < hint.n_nodes;
    hint.port = step.port;
    (void)snprintf(hint.host, sizeof(hint.host), "%s", step.first_host);
    apply_alias(view, &hint);
    (void)snprintf(hint.run_id, sizeof(hint.run_id), "slurm-%.32s.%.16s",
                   text_of(view, "SLURM_JOB_ID"),
                   text_of(view, "SLURM_STEP_ID"));
    *hint_out = hint;
}
