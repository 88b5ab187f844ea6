#include "worker/detect.h"

#include "common/env_names.h"
#include "worker/channel.h"
#include "worker/fail.h"
#include "common/slurm_step.h"

#include <errno.h>
#include <limits.h>
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

/* Whether two variables are set and say different things. */
static bool disagree(const struct reading *reading, const char *a,
                     const char *b)
{
    const char *left = environ_get(reading->env, a);
    const char *right = environ_get(reading->env, b);

    return left != NULL && right != NULL && strcmp(left, right) != 0;
}

static bool same_text(const struct reading *reading, const char *a,
                      const char *b)
{
    return environ_is_set(reading->env, a) && environ_is_set(reading->env, b) &&
           !disagree(reading, a, b);
}

/* Whether the store flaunch named is the one torchrun's variables name. */
static bool same_store(const struct reading *reading)
{
    const char *store = environ_get(reading->env, ENV_FLAUNCH_STORE);
    const char *host = environ_get(reading->env, ENV_MASTER_ADDR);
    const char *port = environ_get(reading->env, ENV_MASTER_PORT);
    char text[300];

    if (store == NULL || host == NULL || port == NULL) {
        return false;
    }
    (void)snprintf(text, sizeof(text), "%s:%s", host, port);
    return strcmp(text, store) == 0;
}

/*
 * flaunch sets both its own names and torchrun's. Where they differ another
 * launcher runs inside this worker, and the inner one's word counts. LOCAL_RANK
 * may be 0 for all of a node (--virtual-local-rank): it tells nothing.
 */
static bool flaunch_is_outer(const struct reading *reading)
{
    return !same_text(reading, ENV_FLAUNCH_RANK, ENV_RANK) ||
           !same_text(reading, ENV_FLAUNCH_WORLD_SIZE, ENV_WORLD_SIZE) ||
           !same_text(reading, ENV_FLAUNCH_RUN_ID, ENV_RUN_ID) ||
           !same_store(reading);
}

/* By hand: the address belongs to the record, except in a job of one. */
static enum environ_result check_by_hand(const struct reading *reading,
                                         const struct place *place, char *why,
                                         size_t why_size)
{
    const char *host = environ_get(reading->env, ENV_MASTER_ADDR);
    int port;

    if (channel_url_gives_address(reading->wish->url) ||
        (place->world_size == 1 && host == NULL)) {
        return ENVIRON_OK;
    }
    if (host == NULL || host[0] == '\0') {
        return environ_missing(why, why_size, ENV_MASTER_ADDR);
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
        controller = environ_get(reading->env, names->sign);
        if (controller == NULL || strcmp(controller, "gloo") != 0) {
            (void)snprintf(why, why_size, "%s is not gloo", names->sign);
            return ENVIRON_MISSING;
        }
        if (!environ_is_set(reading->env, "HOROVOD_CROSS_RANK") ||
            !environ_is_set(reading->env, "HOROVOD_CROSS_SIZE")) {
            return environ_missing(why, why_size,
                                   "HOROVOD_CROSS_RANK or _SIZE");
        }
        return ENVIRON_OK;
    case LAUNCHER_HYDRA:
        return channel_pmi_is_live(reading->env, why, why_size)
                   ? ENVIRON_OK
                   : ENVIRON_MISSING;
    case LAUNCHER_OPENMPI:
        if (environ_is_set(reading->env, "PMIX_NAMESPACE") &&
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
    if (by_hand && !environ_is_set(reading->env, names->local_rank)) {
        place->local_rank = 0; /* often left out: then 0 of 1 */
    } else if (result == ENVIRON_OK && names->local_rank != NULL) {
        result = environ_int(env, names->local_rank, 0, max - 1,
                             &place->local_rank, why, why_size);
    }
    if (result != ENVIRON_OK || names->local_world_size == NULL) {
        return result;
    }
    if (!environ_is_set(reading->env, names->local_world_size) &&
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
    if (!environ_is_set(reading->env, names->sign)) {
        return environ_missing(why, why_size, names->sign);
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

    detected_explain(
        out, "rank %s of %s, local rank %s of %s", number(place->rank, -1, a),
        number(place->world_size, 0, b), number(place->local_rank, -1, c),
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
    rc = channel_choose(reading->env, reading->wish->url, out, reading->error);
    if (rc < 0) {
        return rc;
    }
    detected_explain(out, "%s: chosen; ", launcher_name(out->launcher));
    explain_place(out, place);
    detected_explain(out, ", ");
    channel_explain(out);
    detected_explain(out, "\n");
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
        environ_is_set(reading->env, names->sign) &&
        flaunch_is_outer(reading)) {
        detected_explain(reading->out,
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
        detected_explain(reading->out, "%s: whole as well: ", name);
        explain_place(reading->out, &place);
        detected_explain(reading->out, "; %s=%s would choose it\n",
                         ENV_FLAUNCH_LAUNCHER, name);
        return 0;
    }
    if (result == ENVIRON_OK) {
        rc = choose(reading, names, &place);
        return rc < 0 ? rc : 1;
    }
    /* Of two records of one launcher the second is told of where it is there.
     */
    if (names->second && !environ_is_set(reading->env, names->sign)) {
        return 0;
    }
    detected_explain(reading->out, "%s: %s\n", name, why);
    if (chosen || !environ_is_set(reading->env, names->sign)) {
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
        const char *text = environ_get(reading->env, signs[i].name);

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
    detected_explain(out, "none: chosen; a job of one process\n");
    return 0;
}

/* Whom the caller or the environment names; checked. */
static int read_wanted(struct reading *reading)
{
    const char *wanted = reading->wish->launcher;
    enum launcher launcher;
    char known[256];
    size_t len = 0;
    int i;

    if (wanted == NULL || wanted[0] == '\0') {
        wanted = environ_get(reading->env, ENV_FLAUNCH_LAUNCHER);
    }
    if (wanted == NULL || wanted[0] == '\0') {
        return 0;
    }
    if (!launcher_by_name(wanted, &launcher)) {
        for (i = 0; i < N_LAUNCHERS; i++) {
            len += (size_t)snprintf(known + len, sizeof(known) - len, " %s",
                                    launcher_name((enum launcher)i));
        }
        return fail_set(reading->error, FLAUNCH_USAGE, -EINVAL,
                        "unknown launcher %.64s; known are%s", wanted, known);
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
        detected_explain(detected_out, "none: asked for\n");
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
