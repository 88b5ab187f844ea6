#include "launcher/nodes.h"

#include "common/env_names.h"
#include "common/parse.h"
#include "launcher/rdzv_conf.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LEASE_MIN_MS 2000
#define LEASE_MAX_MS 600000

/* What is read, and where from. */
struct reading {
    const struct options *options;
    const struct environ_view *view;
    struct slurm_hint slurm;
    struct rdzv_conf conf;
    struct nodes *nodes;
    struct err *err;
};

static const char *text_of(const struct reading *reading, enum option_id id)
{
    const char *text = reading->options->values[id].text;

    return text != NULL ? text : "";
}

static bool is_given(const struct reading *reading, enum option_id id)
{
    const struct option_value *value = &reading->options->values[id];

    return value->text != NULL && value->source != FROM_DEFAULT;
}

static int bad(const struct reading *reading, enum option_id id,
               const char *want)
{
    return options_bad(reading->options, id, want, reading->err);
}

/* --- how many ----------------------------------------------------------- */

static int read_nnodes(const struct reading *reading)
{
    static const char want[] =
        "give a number of nodes, or MIN:MAX, such as 2 or 2:4";
    const char *text = text_of(reading, OPT_NNODES);
    const char *colon = strchr(text, ':');
    char min_text[16] = "";
    size_t len = colon != NULL ? (size_t)(colon - text) : strlen(text);
    int64_t min;
    int64_t max;

    if (len >= sizeof(min_text)) {
        return bad(reading, OPT_NNODES, want);
    }
    memcpy(min_text, text, len);
    if (parse_python_int(min_text, 1, AGENT_NODES_MAX, &min) < 0) {
        return bad(reading, OPT_NNODES, want);
    }
    max = min;
    if (colon != NULL &&
        parse_python_int(colon + 1, min, AGENT_NODES_MAX, &max) < 0) {
        return bad(reading, OPT_NNODES, want);
    }
    reading->nodes->min = (uint32_t)min;
    reading->nodes->max = (uint32_t)max;
    return 0;
}

/* Without --nnodes: what Slurm says, unless that would be a guess. */
static int guess_nnodes(const struct reading *reading)
{
    const struct slurm_hint *slurm = &reading->slurm;

    if (options_flag(reading->options, OPT_STANDALONE)) {
        reading->nodes->min = 1;
        reading->nodes->max = 1;
        return 0;
    }
    if (is_given(reading, OPT_NNODES) ||
        (!slurm->usable && slurm->refuse[0] == '\0')) {
        return read_nnodes(reading);
    }
    if (!slurm->usable) {
        return err_set(reading->err, -EINVAL, "%s", slurm->refuse);
    }
    reading->nodes->min = slurm->n_nodes;
    reading->nodes->max = slurm->n_nodes;
    reading->nodes->from = "Slurm";
    return 0;
}

/* Whether Slurm's step is this job: what is not given follows from it. */
static bool is_slurms(const struct reading *reading)
{
    return reading->slurm.usable &&
           reading->slurm.n_nodes == reading->nodes->max &&
           reading->nodes->max > 1;
}

static int read_node_rank(const struct reading *reading)
{
    struct nodes *nodes = reading->nodes;
    const char *text = NULL;
    const char *name = NULL;
    int64_t rank;

    if (is_given(reading, OPT_NODE_RANK)) {
        text = text_of(reading, OPT_NODE_RANK);
        name = "--node-rank";
    } else if (is_slurms(reading)) {
        nodes->node_rank = reading->slurm.node_rank;
        nodes->from = "Slurm";
        return 0;
    } else if (nodes->max > 1) {
        name = ENV_JOB_COMPLETION_INDEX;
        text = environ_get(reading->view, name);
    }
    if (text == NULL) {
        return 0;
    }
    if (parse_python_int(text, 0, nodes->max - 1, &rank) < 0) {
        return err_set(reading->err, -EINVAL,
                       "%s=%.32s: give a number from 0 to %u, one less than "
                       "--nnodes",
                       name, text, nodes->max - 1);
    }
    nodes->node_rank = (uint32_t)rank;
    return 0;
}

/* --- where -------------------------------------------------------------- */

/* Take over a host, "[...]" taken off: false for what is none. */
static bool take_host(const char *text, size_t len, char *host_out)
{
    size_t i;

    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    if (len == 0 || len >= AGENT_HOST_MAX || text[0] == '-') {
        return false;
    }
    for (i = 0; i < len; i++) {
        if (!isalnum((unsigned char)text[i]) &&
            strchr("._-:%", text[i]) == NULL) {
            return false;
        }
    }
    memcpy(host_out, text, len);
    host_out[len] = '\0';
    return true;
}

/* "HOST", "HOST:PORT", "[V6]:PORT", "V6". */
static int read_endpoint(const struct reading *reading)
{
    const char *text = text_of(reading, OPT_RDZV_ENDPOINT);
    const char *colon = strrchr(text, ':');
    struct nodes *nodes = reading->nodes;
    size_t len = strlen(text);
    int64_t port = nodes->max > 1 ? NODES_RDZV_PORT : 0;

    /* Of several colons none ends a host, but for one in brackets. */
    if (colon != NULL &&
        (strchr(text, ':') == colon || (text[0] == '[' && colon[-1] == ']'))) {
        if (parse_int(colon + 1, 0, 65535, &port) < 0) {
            return bad(reading, OPT_RDZV_ENDPOINT,
                       "give HOST or HOST:PORT, the port from 0 to 65535");
        }
        len = (size_t)(colon - text);
    }
    if (!take_host(text, len, nodes->host)) {
        return bad(reading, OPT_RDZV_ENDPOINT, "give HOST or HOST:PORT");
    }
    nodes->port = (uint16_t)port;
    (void)snprintf(nodes->address, sizeof(nodes->address), "%s", nodes->host);
    return 0;
}

static int read_master(const struct reading *reading)
{
    struct nodes *nodes = reading->nodes;
    const char *text = text_of(reading, OPT_MASTER_PORT);
    int64_t port;

    if (is_given(reading, OPT_MASTER_ADDR)) {
        const char *host = text_of(reading, OPT_MASTER_ADDR);

        if (!take_host(host, strlen(host), nodes->host)) {
            return bad(reading, OPT_MASTER_ADDR,
                       "give a host name or an address");
        }
        (void)snprintf(nodes->address, sizeof(nodes->address), "%s",
                       nodes->host);
    } else if (is_slurms(reading)) {
        (void)snprintf(nodes->host, sizeof(nodes->host), "%s",
                       reading->slurm.host);
        nodes->port = reading->slurm.port;
        nodes->from = "Slurm";
    }
    if (!is_given(reading, OPT_MASTER_PORT)) {
        if (nodes->port == 0 && nodes->max > 1) {
            nodes->port = NODES_PORT;
        }
        return 0;
    }
    if (parse_int(text, 0, 65535, &port) < 0) {
        return bad(reading, OPT_MASTER_PORT,
                   "give a number from 0 to 65535, 0 for a free port");
    }
    nodes->port = (uint16_t)port;
    return 0;
}

static int read_place(const struct reading *reading)
{
    struct nodes *nodes = reading->nodes;
    /* One node needs no file to be found by others. */
    bool endpoint = text_of(reading, OPT_RDZV_ENDPOINT)[0] != '\0' &&
                    !options_flag(reading->options, OPT_STANDALONE) &&
                    !reading->conf.by_file;
    int rc = endpoint ? read_endpoint(reading) : read_master(reading);

    if (rc < 0 || nodes->max == 1) {
        return rc;
    }
    if (reading->conf.by_file) {
        return bad(reading, OPT_RDZV_CONF,
                   "nodes of flaunch meet at a port, not in a file: "
                   "store_type=tcp");
    }
    if (nodes->port == 0) {
        return bad(reading, endpoint ? OPT_RDZV_ENDPOINT : OPT_MASTER_PORT,
                   "several nodes need a port that they know, not a free one");
    }
    if (nodes->host[0] == '\0' && nodes->hosting != NODES_HOST_HERE) {
        return bad(reading, OPT_NNODES,
                   "say where the nodes meet, with --master-addr=HOST, the "
                   "same on each node");
    }
    return 0;
}

static void decide_hosting(const struct reading *reading)
{
    struct nodes *nodes = reading->nodes;

    if (nodes->max == 1) {
        nodes->hosting = NODES_HOST_HERE;
    } else if (nodes->node_rank != AGENT_NO_RANK) {
        nodes->hosting =
            nodes->node_rank == 0 ? NODES_HOST_HERE : NODES_HOST_ELSEWHERE;
    } else if (reading->conf.is_host != RDZV_IS_HOST_UNSET) {
        nodes->hosting =
            reading->conf.is_host ? NODES_HOST_HERE : NODES_HOST_ELSEWHERE;
    } else {
        nodes->hosting = NODES_HOST_BY_ADDRESS;
    }
}

static int read_backend(const struct reading *reading)
{
    const char *text = text_of(reading, OPT_RDZV_BACKEND);

    if (strcmp(text, "static") == 0 || strcmp(text, "c10d") == 0) {
        return 0;
    }
    if (strncmp(text, "etcd", 4) == 0) {
        return bad(reading, OPT_RDZV_BACKEND,
                   "flaunch needs no etcd, its host node does that work: use "
                   "--rdzv-backend=c10d --rdzv-endpoint=HOST:PORT, where HOST "
                   "is one of the job's nodes");
    }
    return bad(reading, OPT_RDZV_BACKEND, "give static or c10d");
}

/* --- times and names ---------------------------------------------------- */

static int read_time(const struct reading *reading, enum option_id id,
                     uint64_t conf_ms, uint64_t *ms_out)
{
    if (conf_ms > 0 && !is_given(reading, id)) {
        *ms_out = conf_ms;
        return 0;
    }
    if (parse_seconds(text_of(reading, id), ms_out) < 0) {
        return bad(reading, id, "give seconds, such as 30 or 0.5");
    }
    return 0;
}

static int read_times(const struct reading *reading)
{
    struct nodes *nodes = reading->nodes;
    int rc = read_time(reading, OPT_JOIN_TIMEOUT, reading->conf.join_ms,
                       &nodes->join_ms);

    if (rc == 0) {
        rc = read_time(reading, OPT_HEARTBEAT_TIMEOUT, reading->conf.lease_ms,
                       &nodes->lease_ms);
    }
    if (rc < 0) {
        return rc;
    }
    if (nodes->lease_ms < LEASE_MIN_MS || nodes->lease_ms > LEASE_MAX_MS) {
        if (is_given(reading, OPT_HEARTBEAT_TIMEOUT)) {
            return bad(reading, OPT_HEARTBEAT_TIMEOUT, "give 2 to 600 seconds");
        }
        nodes->lease_ms =
            nodes->lease_ms < LEASE_MIN_MS ? LEASE_MIN_MS : LEASE_MAX_MS;
    }
    nodes->last_call_ms =
        reading->conf.last_call_ms > 0 ? reading->conf.last_call_ms : 30000;
    return 0;
}

/*
 * Whether the job gets a name of its own: where torchrun makes a UUID, unless
 * one was given. Nodes that look for each other need one they know.
 */
static bool wants_new_id(const struct reading *reading)
{
    const char *given = text_of(reading, OPT_RDZV_ID);

    if (options_flag(reading->options, OPT_STANDALONE)) {
        return true;
    }
    if (reading->nodes->max > 1) {
        return false;
    }
    return given[0] == '\0' ||
           (!is_given(reading, OPT_RDZV_ID) &&
            !is_given(reading, OPT_MASTER_PORT) &&
            text_of(reading, OPT_RDZV_ENDPOINT)[0] == '\0' &&
            strcmp(text_of(reading, OPT_RDZV_BACKEND), "static") == 0);
}

static void read_run_id(const struct reading *reading, const char *new_run_id)
{
    struct nodes *nodes = reading->nodes;
    const char *made = "";

    nodes->given_run_id = text_of(reading, OPT_RDZV_ID);
    nodes->backend = text_of(reading, OPT_RDZV_BACKEND);
    if (is_slurms(reading) && !is_given(reading, OPT_RDZV_ID)) {
        made = reading->slurm.run_id;
    } else if (wants_new_id(reading)) {
        made = new_run_id;
        nodes->backend = "c10d";
    }
    (void)snprintf(nodes->made_run_id, sizeof(nodes->made_run_id), "%s", made);
}

static int read_names(const struct reading *reading, const char *hostname)
{
    struct nodes *nodes = reading->nodes;
    const char *local = text_of(reading, OPT_LOCAL_ADDR);

    nodes->bind = text_of(reading, OPT_BIND);
    if (nodes->max > 1 && strlen(nodes->given_run_id) >= AGENT_RUN_ID_MAX) {
        return bad(reading, OPT_RDZV_ID, "too long");
    }
    if (local[0] == '\0') {
        (void)snprintf(nodes->name, sizeof(nodes->name), "%s", hostname);
        return 0;
    }
    if (!take_host(local, strlen(local), nodes->name)) {
        return bad(reading, OPT_LOCAL_ADDR, "give a host name or an address");
    }
    if (nodes->hosting == NODES_HOST_HERE && nodes->address[0] == '\0') {
        (void)snprintf(nodes->address, sizeof(nodes->address), "%s",
                       nodes->name);
    }
    return 0;
}

int nodes_resolve(const struct options *options,
                  const struct environ_view *view, const char *hostname,
                  const char *new_run_id, struct nodes *nodes_out,
                  struct err *err)
{
    struct nodes nodes = { .node_rank = AGENT_NO_RANK };
    struct reading reading = {
        .options = options, .view = view, .nodes = &nodes, .err = err
    };
    int rc;

    slurm_read(view, &reading.slurm);
    rc = rdzv_conf_parse(text_of(&reading, OPT_RDZV_CONF), &reading.conf, err);
    rc = rc == 0 ? read_backend(&reading) : rc;
    rc = rc == 0 ? guess_nnodes(&reading) : rc;
    rc = rc == 0 ? read_node_rank(&reading) : rc;
    if (rc < 0) {
        return rc;
    }
    decide_hosting(&reading);
    rc = read_place(&reading);
    rc = rc == 0 ? read_times(&reading) : rc;
    read_run_id(&reading, new_run_id);
    rc = rc == 0 ? read_names(&reading, hostname) : rc;
    if (rc < 0) {
        return rc;
    }
    nodes.n_gpus = reading.slurm.n_gpus;
    (void)snprintf(nodes.unknown, sizeof(nodes.unknown), "%s",
                   reading.conf.unknown);
    *nodes_out = nodes;
    return 0;
}

bool nodes_meet_on_loopback(const struct nodes *nodes)
{
    return nodes->max > 1 && (strcmp(nodes->host, "localhost") == 0 ||
                              strcmp(nodes->host, "::1") == 0 ||
                              strncmp(nodes->host, "127.", 4) == 0);
}

const char *nodes_run_id(const struct nodes *nodes)
{
    return nodes->made_run_id[0] != '\0' ? nodes->made_run_id
                                         : nodes->given_run_id;
}
