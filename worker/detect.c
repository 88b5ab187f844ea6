#include "worker/detect.h"

#include "common/env_names.h"
#include "common/parse.h"
#include "worker/fail.h"
#include "worker/slurm_step.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WHY_MAX 256

struct place {
    int rank;
    int world_size;
    int local_rank;
    int local_world_size;
};

struct reading {
    const struct environ_view *env;
    const struct detect_wish *wish;
    const char *wanted; /* the launcher asked for, or NULL */
    struct detected *out;
    struct flaunch_error *error;
    char half[600]; /* the records that are not whole, and why */
};

void detect_explain(struct detected *detected, const char *format, ...)
{
    size_t len = strlen(detected->explanation);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(detected->explanation + len,
                    sizeof(detected->explanation) - len, format, args);
    va_end(args);
}

static const char *get(const struct reading *reading, const char *name)
{
    return environ_get(reading->env, name);
}

static bool is_set(const struct reading *reading, const char *name)
{
    return get(reading, name) != NULL;
}

/* Whether two variables are set and say different things. */
static bool disagree(const struct reading *reading, const char *a,
                     const char *b)
{
    const char *left = get(reading, a);
    const char *right = get(reading, b);

    return left != NULL && right != NULL && strcmp(left, right) != 0;
}

static bool same_text(const struct reading *reading, const char *a,
                      const char *b)
{
    return is_set(reading, a) && is_set(reading, b) && !disagree(reading, a, b);
}

/* Whether the store flaunch named is the one torchrun's variables name. */
static bool same_store(const struct reading *reading)
{
    const char *store = get(reading, ENV_FLAUNCH_STORE);
    const char *host = get(reading, ENV_MASTER_ADDR);
    const char *port = get(reading, ENV_MASTER_PORT);
    char text[300];

    if (store == NULL || host == NULL || port == NULL) {
        return false;
    }
    (void)snprintf(text, sizeof(text), "%s:%s", host, port);
    return strcmp(text, store) == 0;
}

/*
 * flaunch sets both its own names and torchrun's. Where they differ another
 * launcher runs inside this worker, and the inner one's word counts.
 */
static bool flaunch_is_outer(const struct reading *reading)
{
    return !same_text(reading, ENV_FLAUNCH_RANK, ENV_RANK) ||
           !same_text(reading, ENV_FLAUNCH_WORLD_SIZE, ENV_WORLD_SIZE) ||
           !same_text(reading, ENV_FLAUNCH_LOCAL_RANK, ENV_LOCAL_RANK) ||
           !same_text(reading, ENV_FLAUNCH_RUN_ID, ENV_RUN_ID) ||
           !same_store(reading);
}

/*
 * Whether somebody answers PMI here. A process that inherits the variable
 * without the descriptor would write into whatever has that number now.
 */
static bool pmi_is_live(const struct reading *reading, char *why,
                        size_t why_size)
{
    int fd;

    if (is_set(reading, "PMI_PORT") && is_set(reading, "PMI_ID")) {
        return true;
    }
    if (environ_int(reading->env, "PMI_FD", 0, INT_MAX, &fd, why, why_size) !=
        ENVIRON_OK) {
        return false;
    }
    if (!reading->env->is_socket(fd, reading->env->arg)) {
        (void)snprintf(why, why_size,
                       "PMI_FD=%d is no open socket: an outer launcher's", fd);
        return false;
    }
    return true;
}

/* What an address by dist_url saves the plain environment from naming. */
static bool url_gives_address(const struct reading *reading)
{
    const char *url = reading->wish->url;

    return url != NULL && strcmp(url, "env://") != 0;
}

static enum environ_result missing(char *why, size_t why_size, const char *name)
{
    (void)snprintf(why, why_size, "%s is not set", name);
    return ENVIRON_MISSING;
}

/* By hand: the address belongs to the record, except in a job of one. */
static enum environ_result check_by_hand(const struct reading *reading,
                                         const struct place *place, char *why,
                                         size_t why_size)
{
    const char *host = get(reading, ENV_MASTER_ADDR);
    int port;

    if (url_gives_address(reading) ||
        (place->world_size == 1 && host == NULL)) {
        return ENVIRON_OK;
    }
    if (host == NULL || host[0] == '\0') {
        return missing(why, why_size, ENV_MASTER_ADDR);
    }
    return environ_int(reading->env, ENV_MASTER_PORT, 1, 65535, &port, why,
                       why_size);
}

/* What a launcher's record needs beside its numbers. */
static enum environ_result check_launcher(const struct reading *reading,
                                          const struct record_names *names,
                                          char *why, size_t why_size)
{
    const char *controller;

    switch (names->launcher) {
    case LAUNCHER_HOROVOD:
        controller = get(reading, names->sign);
        if (controller == NULL || strcmp(controller, "gloo") != 0) {
            (void)snprintf(why, why_size, "%s is not gloo", names->sign);
            return ENVIRON_MISSING;
        }
        if (!is_set(reading, "HOROVOD_CROSS_RANK") ||
            !is_set(reading, "HOROVOD_CROSS_SIZE")) {
            return missing(why, why_size, "HOROVOD_CROSS_RANK or _SIZE");
        }
        return ENVIRON_OK;
    case LAUNCHER_HYDRA:
        return pmi_is_live(reading, why, why_size) ? ENVIRON_OK
                                                   : ENVIRON_MISSING;
    case LAUNCHER_OPENMPI:
        if (is_set(reading, "PMIX_NAMESPACE") &&
            disagree(reading, names->rank, "PMIX_RANK")) {
            (void)snprintf(why, why_size, "%s and PMIX_RANK disagree",
                           names->rank);
            return ENVIRON_BAD;
        }
        return ENVIRON_OK;
    case LAUNCHER_PALS:
        if (disagree(reading, names->rank, "PMI_RANK") ||
            disagree(reading, names->local_rank, "PMI_LOCAL_RANK")) {
            (void)snprintf(why, why_size, "PALS_* and PMI_* disagree");
            return ENVIRON_BAD;
        }
        return ENVIRON_OK;
    default:
        return ENVIRON_OK;
    }
}

/* The names that are there as numbers that fit together. */
static enum environ_result read_numbers(const struct reading *reading,
                                        const struct record_names *names,
                                        struct place *place, char *why,
                                        size_t why_size)
{
    bool by_hand = names->launcher == LAUNCHER_ENV;
    const struct environ_view *env = reading->env;
    enum environ_result result = ENVIRON_OK;
    int max = INT_MAX;

    if (names->world_size != NULL) {
        result = environ_int(env, names->world_size, 1, INT_MAX,
                             &place->world_size, why, why_size);
        max = place->world_size;
    }
    if (result == ENVIRON_OK) {
        result = environ_int(env, names->rank, 0, max - 1, &place->rank, why,
                             why_size);
    }
    if (by_hand && !is_set(reading, names->local_rank)) {
        place->local_rank = 0; /* often left out: then 0 of 1 */
    } else if (result == ENVIRON_OK && names->local_rank != NULL) {
        result = environ_int(env, names->local_rank, 0, max - 1,
                             &place->local_rank, why, why_size);
    }
    if (result != ENVIRON_OK || names->local_world_size == NULL) {
        return result;
    }
    if (!is_set(reading, names->local_world_size) &&
        (by_hand || names->launcher == LAUNCHER_PALS ||
         names->launcher == LAUNCHER_JSRUN)) {
        place->local_world_size = by_hand ? place->local_rank + 1 : 0;
        return ENVIRON_OK;
    }
    return environ_int(env, names->local_world_size, place->local_rank + 1, max,
                       &place->local_world_size, why, why_size);
}

static enum environ_result read_slurm(const struct reading *reading,
                                      struct place *place, char *why,
                                      size_t why_size)
{
    struct slurm_step step;
    enum environ_result result =
        slurm_step_read(reading->env, &step, why, why_size);

    if (result == ENVIRON_OK) {
        *place = (struct place){ step.rank, step.world_size, step.local_rank,
                                 step.local_world_size };
    }
    return result;
}

static enum environ_result read_record(const struct reading *reading,
                                       const struct record_names *names,
                                       struct place *place, char *why,
                                       size_t why_size)
{
    enum environ_result result;

    *place = (struct place){ -1, 0, -1, 0 };
    if (names->launcher == LAUNCHER_SLURM) {
        return read_slurm(reading, place, why, why_size);
    }
    if (!is_set(reading, names->sign)) {
        return missing(why, why_size, names->sign);
    }
    result = check_launcher(reading, names, why, why_size);
    if (result == ENVIRON_OK) {
        result = read_numbers(reading, names, place, why, why_size);
    }
    if (result == ENVIRON_OK && names->launcher == LAUNCHER_ENV) {
        result = check_by_hand(reading, place, why, why_size);
    }
    return result;
}

/* --- where to meet --------------------------------------------------------
 */

static int bad(const struct reading *reading, const char *text)
{
    return fail_set(reading->error, FLAUNCH_ENVIRONMENT, -EINVAL, "%s", text);
}

static int take_host_port(const struct reading *reading, const char *name,
                          const char *text)
{
    struct detected *out = reading->out;

    if (text == NULL ||
        parse_host_port(text, out->host, sizeof(out->host), &out->port) < 0) {
        return fail_set(reading->error, FLAUNCH_ENVIRONMENT, -EINVAL,
                        "%s=%.300s is no HOST:PORT", name,
                        text != NULL ? text : "");
    }
    return 0;
}

/* Two variables as host and port: whether both are there and good. */
static enum environ_result take_address(const struct reading *reading,
                                        const char *host_name,
                                        const char *port_name, char *why,
                                        size_t why_size)
{
    const char *host = get(reading, host_name);
    struct detected *out = reading->out;
    enum environ_result result;
    int port;

    if (host == NULL || host[0] == '\0') {
        return missing(why, why_size, host_name);
    }
    if (strlen(host) >= sizeof(out->host)) {
        (void)snprintf(why, why_size, "%s is longer than %zu bytes", host_name,
                       sizeof(out->host) - 1);
        return ENVIRON_BAD;
    }
    result =
        environ_int(reading->env, port_name, 1, 65535, &port, why, why_size);
    if (result == ENVIRON_OK) {
        (void)snprintf(out->host, sizeof(out->host), "%s", host);
        out->port = (uint16_t)port;
    }
    return result;
}

static int take_url(const struct reading *reading)
{
    const char *url = reading->wish->url;
    struct detected *out = reading->out;

    if (strncmp(url, "tcp://", 6) == 0) {
        out->channel = CHANNEL_ADDRESS;
        return take_host_port(reading, "dist_url", url + 6);
    }
    if (strncmp(url, "file://", 7) != 0 || url[7] != '/') {
        return fail_set(reading->error, FLAUNCH_USAGE, -EINVAL,
                        "dist_url=%.200s: env://, tcp://HOST:PORT and "
                        "file:///PATH are known",
                        url);
    }
    if (strlen(url + 7) >= sizeof(out->path)) {
        return fail_set(reading->error, FLAUNCH_USAGE, -EINVAL,
                        "dist_url: the path is longer than %zu bytes",
                        sizeof(out->path) - 1);
    }
    out->channel = CHANNEL_FILE;
    (void)snprintf(out->path, sizeof(out->path), "%s", url + 7);
    return 0;
}

/* PMI's own numbers, where it gives them, must be those of the record: in a
 * shell that mpirun started, they may belong to the outer step. */
static bool pmi_fits(const struct reading *reading, char *why, size_t why_size)
{
    const struct detected *out = reading->out;
    int size = out->world_size;
    int rank = out->rank;

    if (out->launcher == LAUNCHER_OPENMPI ||
        !pmi_is_live(reading, why, why_size)) {
        return false;
    }
    if (is_set(reading, "PMI_RANK") &&
        environ_int(reading->env, "PMI_RANK", 0, INT_MAX, &rank, why,
                    why_size) != ENVIRON_OK) {
        return false;
    }
    if (is_set(reading, "PMI_SIZE") &&
        environ_int(reading->env, "PMI_SIZE", 1, INT_MAX, &size, why,
                    why_size) != ENVIRON_OK) {
        return false;
    }
    return (out->rank < 0 || rank == out->rank) &&
           (out->world_size == 0 || size == out->world_size);
}

static bool pmix_fits(const struct reading *reading)
{
    char why[WHY_MAX];
    int rank;

    return is_set(reading, "PMIX_NAMESPACE") &&
           environ_int(reading->env, "PMIX_RANK", 0, INT_MAX, &rank, why,
                       sizeof(why)) == ENVIRON_OK &&
           (reading->out->rank < 0 || rank == reading->out->rank);
}

static void take_slurm(const struct reading *reading)
{
    struct detected *out = reading->out;
    struct slurm_step step;
    char why[WHY_MAX];

    if (slurm_step_read(reading->env, &step, why, sizeof(why)) == ENVIRON_OK) {
        (void)snprintf(out->host, sizeof(out->host), "%s", step.first_host);
        (void)snprintf(out->token, sizeof(out->token), "%s", step.token);
        out->port = step.port;
        out->n_ports = step.n_ports;
    }
}

/*
 * Launchers with no store of theirs: PMI, PMIx, MASTER_ADDR and MASTER_PORT
 * (scripts for open_flamingo export them), Slurm's own names, in this order.
 * Where libpmix is not there, what follows is left in host and port.
 */
static int choose_foreign(const struct reading *reading)
{
    struct detected *out = reading->out;
    char pmi_why[WHY_MAX] = "";
    char why[WHY_MAX] = "";
    enum environ_result address = take_address(
        reading, ENV_MASTER_ADDR, ENV_MASTER_PORT, why, sizeof(why));

    if (address == ENVIRON_BAD) {
        return bad(reading, why);
    }
    if (address != ENVIRON_OK && out->launcher == LAUNCHER_SLURM) {
        take_slurm(reading);
    }
    if (pmi_fits(reading, pmi_why, sizeof(pmi_why))) {
        out->channel = CHANNEL_PMI;
    } else if (pmix_fits(reading)) {
        out->channel = CHANNEL_PMIX;
    } else if (out->world_size == 0) {
        return fail_set(reading->error, FLAUNCH_ENVIRONMENT, -EINVAL,
                        "launcher %s: how many ranks there are is asked of PMI "
                        "or PMIx, and neither is here",
                        launcher_name(out->launcher));
    } else if (address == ENVIRON_OK) {
        out->channel = CHANNEL_ADDRESS;
    } else if (out->launcher == LAUNCHER_SLURM) {
        out->channel = CHANNEL_SLURM;
    } else {
        return fail_set(reading->error, FLAUNCH_ENVIRONMENT, -EINVAL,
                        "launcher %s: the ranks have no way to meet: neither "
                        "PMI nor PMIx is here and %s; set %s and %s",
                        launcher_name(out->launcher), why, ENV_MASTER_ADDR,
                        ENV_MASTER_PORT);
    }
    return 0;
}

static int choose_channel(const struct reading *reading)
{
    const char *served = get(reading, ENV_USE_AGENT_STORE);
    struct detected *out = reading->out;
    char why[WHY_MAX] = "";
    int rc = 0;

    if (out->world_size == 1) {
        out->channel = CHANNEL_NONE;
        return 0;
    }
    if (url_gives_address(reading)) {
        return out->world_size == 0
                   ? fail_set(reading->error, FLAUNCH_USAGE, -EINVAL,
                              "dist_url and launcher %s: the number of ranks "
                              "is known to PMI or PMIx only",
                              launcher_name(out->launcher))
                   : take_url(reading);
    }
    switch (out->launcher) {
    case LAUNCHER_FLAUNCH:
        out->channel = CHANNEL_STORE;
        return take_host_port(reading, ENV_FLAUNCH_STORE,
                              get(reading, ENV_FLAUNCH_STORE));
    case LAUNCHER_TORCHRUN:
    case LAUNCHER_ENV:
        /* torchrun's own rule: exactly this word. */
        out->channel = served != NULL && strcmp(served, "True") == 0
                           ? CHANNEL_STORE
                           : CHANNEL_ADDRESS;
        rc = take_address(reading, ENV_MASTER_ADDR, ENV_MASTER_PORT, why,
                          sizeof(why)) == ENVIRON_OK
                 ? 0
                 : bad(reading, why);
        return rc;
    case LAUNCHER_HOROVOD:
        out->channel = CHANNEL_HOROVOD;
        rc = take_address(reading, "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                          "HOROVOD_GLOO_RENDEZVOUS_PORT", why,
                          sizeof(why)) == ENVIRON_OK
                 ? 0
                 : bad(reading, why);
        return rc;
    default:
        return choose_foreign(reading);
    }
}

static void explain_channel(struct detected *out)
{
    switch (out->channel) {
    case CHANNEL_STORE:
    case CHANNEL_ADDRESS:
        detect_explain(out, "store %s port %u%s", out->host, out->port,
                       out->channel == CHANNEL_STORE ? "" : ", by rank 0");
        break;
    case CHANNEL_PMI:
        detect_explain(out, "meeting over PMI");
        break;
    case CHANNEL_PMIX:
        detect_explain(out, "meeting over PMIx");
        break;
    case CHANNEL_HOROVOD:
        detect_explain(out, "meeting in Horovod's store %s port %u", out->host,
                       out->port);
        break;
    case CHANNEL_SLURM:
        detect_explain(out, "store by rank 0 on %s, port %u to %d", out->host,
                       out->port, out->port + out->n_ports - 1);
        break;
    case CHANNEL_FILE:
        detect_explain(out, "meeting in the file %s", out->path);
        break;
    case CHANNEL_NONE:
        detect_explain(out, "nobody to meet");
        break;
    }
}

/* --- the choice -----------------------------------------------------------
 */

/* "3", or "?" for what the channel will tell. */
static const char *number(int value, int unknown, char text[16])
{
    (void)snprintf(text, 16, "%d", value);
    return value == unknown ? "?" : text;
}

static void explain_place(struct detected *out, const struct place *place)
{
    char a[16];
    char b[16];
    char c[16];
    char d[16];

    detect_explain(out, "rank %s of %s, local rank %s of %s",
                   number(place->rank, -1, a), number(place->world_size, 0, b),
                   number(place->local_rank, -1, c),
                   number(place->local_world_size, 0, d));
}

static int choose(const struct reading *reading,
                  const struct record_names *names, const struct place *place)
{
    struct detected *out = reading->out;
    int rc;

    out->launcher = names->launcher;
    out->rank = place->rank;
    out->world_size = place->world_size;
    out->local_rank = place->local_rank;
    out->local_world_size = place->local_world_size;
    rc = choose_channel(reading);
    if (rc < 0) {
        return rc;
    }
    detect_explain(out, "%s: chosen; ", launcher_name(out->launcher));
    explain_place(out, place);
    detect_explain(out, ", ");
    explain_channel(out);
    detect_explain(out, "\n");
    return 0;
}

/* Launchers whose sign nobody else sets: half of their record is an error and
 * not a hint. */
static bool half_is_an_error(enum launcher launcher)
{
    return launcher == LAUNCHER_FLAUNCH || launcher == LAUNCHER_TORCHRUN;
}

/* Whether a record is to be read; says why not. */
static bool is_candidate(const struct reading *reading,
                         const struct record_names *names)
{
    const char *name = launcher_name(names->launcher);

    if (reading->wanted != NULL && strcmp(reading->wanted, name) != 0) {
        return false;
    }
    if (reading->wish->horovod && !launcher_is_mpi(names->launcher)) {
        return false;
    }
    if (reading->wanted == NULL && names->launcher == LAUNCHER_FLAUNCH &&
        is_set(reading, names->sign) && flaunch_is_outer(reading)) {
        detect_explain(reading->out,
                       "flaunch: outside; RANK and the like differ from its "
                       "own\n");
        return false;
    }
    return true;
}

/*
 * Read one record: 1 when it is chosen, 0 to go on, -EINVAL. Once one is
 * chosen the others are only told of.
 */
static int consider(struct reading *reading, const struct record_names *names,
                    bool chosen)
{
    const char *name = launcher_name(names->launcher);
    char why[WHY_MAX] = "";
    struct place place;
    size_t half_len;
    enum environ_result result =
        read_record(reading, names, &place, why, sizeof(why));
    int rc;

    if (result == ENVIRON_OK && chosen) {
        detect_explain(reading->out, "%s: whole as well: ", name);
        explain_place(reading->out, &place);
        detect_explain(reading->out, "; %s=%s would choose it\n",
                       ENV_FLAUNCH_LAUNCHER, name);
        return 0;
    }
    if (result == ENVIRON_OK) {
        rc = choose(reading, names, &place);
        return rc < 0 ? rc : 1;
    }
    detect_explain(reading->out, "%s: %s\n", name, why);
    if (chosen || !is_set(reading, names->sign)) {
        return 0;
    }
    if (result == ENVIRON_BAD || half_is_an_error(names->launcher)) {
        return fail_set(reading->error, FLAUNCH_ENVIRONMENT, -EINVAL,
                        "launcher %s: %s", name, why);
    }
    half_len = strlen(reading->half);
    (void)snprintf(reading->half + half_len, sizeof(reading->half) - half_len,
                   "%s%s: %s", half_len > 0 ? "; " : "", name, why);
    return 0;
}

/* Variables that only one of several processes has, or that count them. */
static const struct {
    const char *name;
    bool counts; /* a sign where it is not 1 */
} signs[] = {
    { ENV_WORLD_SIZE, true },
    { ENV_RANK, false },
    { "PMI_SIZE", true },
    { "PMI_ID", false },
    { "PMIX_RANK", false },
    { "OMPI_COMM_WORLD_SIZE", true },
    { "MV2_COMM_WORLD_RANK", false },
    { "MVP_COMM_WORLD_RANK", false },
    { "SLURM_STEP_NUM_TASKS", true },
    { "HOROVOD_SIZE", true },
    { "JSM_NAMESPACE_SIZE", true },
    { "FLUX_JOB_SIZE", true },
    { "PALS_RANKID", false },
    { "ALPS_APP_PE", false },
};

/* A job of one, unless there are signs of more. */
static int take_none(struct reading *reading)
{
    struct detected *out = reading->out;
    size_t i;

    for (i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        const char *text = get(reading, signs[i].name);

        if (text == NULL || (signs[i].counts && strcmp(text, "1") == 0)) {
            continue;
        }
        if (reading->half[0] == '\0') {
            (void)snprintf(reading->half, sizeof(reading->half), "%s",
                           strcmp(signs[i].name, ENV_WORLD_SIZE) == 0
                               ? ENV_RANK " is not set"
                               : "nothing that belongs to it is set");
        }
        return fail_set(reading->error, FLAUNCH_ENVIRONMENT, -EINVAL,
                        "%s=%.32s says that this is one of several processes, "
                        "but no launcher's record is whole (%s); %s=env prints "
                        "what was found, %s=none makes it a job of one",
                        signs[i].name, text, reading->half, ENV_FLAUNCH_DEBUG,
                        ENV_FLAUNCH_LAUNCHER);
    }
    out->launcher = LAUNCHER_NONE;
    detect_explain(out, "none: chosen; a job of one process\n");
    return 0;
}

/* Whom the caller or the environment names; checked. */
static int read_wanted(struct reading *reading)
{
    const char *wanted = reading->wish->launcher;
    enum launcher launcher;

    if (wanted == NULL || wanted[0] == '\0') {
        wanted = get(reading, ENV_FLAUNCH_LAUNCHER);
    }
    if (wanted == NULL || wanted[0] == '\0') {
        return 0;
    }
    if (!launcher_by_name(wanted, &launcher)) {
        return fail_set(reading->error, FLAUNCH_USAGE, -EINVAL,
                        "unknown launcher %.64s: flaunch, torchrun, horovod, "
                        "env, openmpi, jsrun, flux, pals, mvapich, hydra, "
                        "prrte, slurm, aprun and none are known",
                        wanted);
    }
    reading->wanted = wanted;
    return 0;
}

static int not_found(const struct reading *reading)
{
    if (reading->wish->horovod) {
        return fail_set(reading->error, FLAUNCH_ENVIRONMENT, -EINVAL,
                        "the option horovod is set, and neither Horovod nor an "
                        "MPI launcher started this process%s%s",
                        reading->half[0] != '\0' ? ": " : "", reading->half);
    }
    return fail_set(reading->error, FLAUNCH_ENVIRONMENT, -EINVAL,
                    "launcher %s was asked for, and its variables are not set"
                    "%s%s%s",
                    reading->wanted, reading->half[0] != '\0' ? " (" : "",
                    reading->half, reading->half[0] != '\0' ? ")" : "");
}

int detect(const struct environ_view *view, const struct detect_wish *wish,
           struct detected *detected_out, struct flaunch_error *error)
{
    struct reading reading = {
        .env = view, .wish = wish, .out = detected_out, .error = error
    };
    const struct record_names *records;
    bool chosen = false;
    size_t n;
    size_t i;
    int rc;

    *detected_out = (struct detected){ .world_size = 1, .local_world_size = 1 };
    rc = read_wanted(&reading);
    if (rc < 0) {
        return rc;
    }
    if (reading.wanted != NULL && strcmp(reading.wanted, "none") == 0) {
        detect_explain(detected_out, "none: asked for\n");
        return 0;
    }
    records = launcher_records(&n);
    for (i = 0; i < n; i++) {
        if (!is_candidate(&reading, &records[i])) {
            continue;
        }
        rc = consider(&reading, &records[i], chosen);
        if (rc < 0) {
            return rc;
        }
        chosen = chosen || rc == 1;
    }
    if (chosen) {
        return 0;
    }
    if (reading.wanted != NULL || wish->horovod) {
        return not_found(&reading);
    }
    return take_none(&reading);
}
