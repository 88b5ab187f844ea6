#include "worker/detect.h"

#include "common/env_names.h"
#include "common/parse.h"
#include "worker/fail.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The names under which a launcher gives its record. */
struct record_names {
    enum launcher launcher;
    const char *sign; /* its presence says that the launcher was here */
    const char *rank;
    const char *world_size;
    const char *local_rank;
    const char *local_world_size;
};

/* In order: the first whole record wins. */
static const struct record_names records[] = {
    { LAUNCHER_FLAUNCH, ENV_FLAUNCH_RUN_ID, ENV_FLAUNCH_RANK,
      ENV_FLAUNCH_WORLD_SIZE, ENV_FLAUNCH_LOCAL_RANK,
      ENV_FLAUNCH_LOCAL_WORLD_SIZE },
    { LAUNCHER_TORCHRUN, ENV_RUN_ID, ENV_RANK, ENV_WORLD_SIZE, ENV_LOCAL_RANK,
      ENV_LOCAL_WORLD_SIZE },
    { LAUNCHER_ENV, ENV_RANK, ENV_RANK, ENV_WORLD_SIZE, ENV_LOCAL_RANK,
      ENV_LOCAL_WORLD_SIZE },
};

#define N_RECORDS (sizeof(records) / sizeof(records[0]))

struct reading {
    detect_env_fn *env;
    void *arg;
    struct detected *out;
    struct flaunch_error *error;
};

static void explain(struct detected *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void explain(struct detected *out, const char *format, ...)
{
    size_t len = strlen(out->explanation);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(out->explanation + len, sizeof(out->explanation) - len,
                    format, args);
    va_end(args);
}

const char *launcher_name(enum launcher launcher)
{
    static const char *const names[] = { "none", "flaunch", "torchrun", "env" };

    return names[launcher];
}

/* A variable as an integer; fallback where it is not set (-1: it must be). */
static int read_int(const struct reading *reading, const char *name,
                    int64_t min, int64_t max, int fallback, int *value_out)
{
    const char *text = reading->env(name, reading->arg);
    int64_t value;

    if (text == NULL && fallback >= 0) {
        *value_out = fallback;
        return 0;
    }
    if (text == NULL) {
        return fail_set(reading->error, FLAUNCH_ENVIRONMENT, -EINVAL,
                        "%s is not set", name);
    }
    if (parse_int(text, min, max, &value) < 0) {
        return fail_set(reading->error, FLAUNCH_ENVIRONMENT, -EINVAL,
                        "%s=%s is no number from %lld to %lld", name, text,
                        (long long)min, (long long)max);
    }
    *value_out = (int)value;
    return 0;
}

/* Numbers that fit together: 0 <= rank < size, and the same locally. */
static int read_numbers(const struct reading *reading,
                        const struct record_names *names)
{
    bool by_hand = names->launcher == LAUNCHER_ENV;
    struct detected *out = reading->out;
    int rc;

    rc = read_int(reading, names->world_size, 1, INT_MAX, -1, &out->world_size);
    if (rc < 0) {
        return rc;
    }
    rc = read_int(reading, names->rank, 0, out->world_size - 1, -1, &out->rank);
    if (rc < 0) {
        return rc;
    }
    /* By hand LOCAL_RANK is often left out: then 0 of 1. */
    rc = read_int(reading, names->local_rank, 0, out->world_size - 1,
                  by_hand ? 0 : -1, &out->local_rank);
    if (rc < 0) {
        return rc;
    }
    return read_int(reading, names->local_world_size, out->local_rank + 1,
                    out->world_size, by_hand ? out->local_rank + 1 : -1,
                    &out->local_world_size);
}

static int read_master(const struct reading *reading)
{
    const char *host = reading->env(ENV_MASTER_ADDR, reading->arg);
    struct detected *out = reading->out;
    int port = 0;
    int rc;

    if (host == NULL || host[0] == '\0') {
        return fail_set(reading->error, FLAUNCH_ENVIRONMENT, -EINVAL,
                        "%s is set and %s is not: set %s, %s, %s and %s for "
                        "every rank",
                        ENV_RANK, ENV_MASTER_ADDR, ENV_RANK, ENV_WORLD_SIZE,
                        ENV_MASTER_ADDR, ENV_MASTER_PORT);
    }
    rc = read_int(reading, ENV_MASTER_PORT, 1, 65535, -1, &port);
    if (rc < 0) {
        return rc;
    }
    if (strlen(host) >= sizeof(out->host)) {
        return fail_set(reading->error, FLAUNCH_ENVIRONMENT, -EINVAL,
                        "%s is longer than %zu bytes", ENV_MASTER_ADDR,
                        sizeof(out->host) - 1);
    }
    (void)snprintf(out->host, sizeof(out->host), "%s", host);
    out->port = (uint16_t)port;
    return 0;
}

static bool is_set(const struct reading *reading, const char *name)
{
    return reading->env(name, reading->arg) != NULL;
}

static bool same_text(const struct reading *reading, const char *a,
                      const char *b)
{
    const char *left = reading->env(a, reading->arg);
    const char *right = reading->env(b, reading->arg);

    return left != NULL && right != NULL && strcmp(left, right) == 0;
}

/* Whether the store flaunch named is the one torchrun's variables name. */
static bool same_store(const struct reading *reading)
{
    const char *store = reading->env(ENV_FLAUNCH_STORE, reading->arg);
    const char *host = reading->env(ENV_MASTER_ADDR, reading->arg);
    const char *port = reading->env(ENV_MASTER_PORT, reading->arg);
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

static int take_flaunch(const struct reading *reading,
                        const struct record_names *names)
{
    const char *store = reading->env(ENV_FLAUNCH_STORE, reading->arg);
    struct detected *out = reading->out;
    int rc = read_numbers(reading, names);

    if (rc < 0) {
        return rc;
    }
    if (store == NULL ||
        parse_host_port(store, out->host, sizeof(out->host), &out->port) < 0) {
        return fail_set(reading->error, FLAUNCH_ENVIRONMENT, -EINVAL,
                        "%s=%s is no HOST:PORT", ENV_FLAUNCH_STORE,
                        store != NULL ? store : "");
    }
    out->agent_store = true;
    return 0;
}

static int take_torch(const struct reading *reading,
                      const struct record_names *names)
{
    const char *served = reading->env(ENV_USE_AGENT_STORE, reading->arg);
    struct detected *out = reading->out;
    int rc = read_numbers(reading, names);

    if (rc < 0) {
        return rc;
    }
    if (names->launcher == LAUNCHER_ENV && out->world_size == 1 &&
        !is_set(reading, ENV_MASTER_ADDR)) {
        return 0; /* a job of one needs no address */
    }
    /* torchrun's own rule: exactly this word. */
    out->agent_store = served != NULL && strcmp(served, "True") == 0;
    return read_master(reading);
}

static int take_record(const struct reading *reading,
                       const struct record_names *names)
{
    struct detected *out = reading->out;
    int rc = names->launcher == LAUNCHER_FLAUNCH ? take_flaunch(reading, names)
                                                 : take_torch(reading, names);

    if (rc < 0) {
        return rc;
    }
    out->launcher = names->launcher;
    explain(out,
            "%s: chosen; rank %d of %d, local rank %d of %d, store %s port "
            "%u\n",
            launcher_name(out->launcher), out->rank, out->world_size,
            out->local_rank, out->local_world_size,
            out->host[0] != '\0' ? out->host : "(none)", out->port);
    return 0;
}

/* A job of one, unless there are signs of more. */
static int take_none(const struct reading *reading)
{
    struct detected *out = reading->out;
    int world_size = 1;

    if (is_set(reading, ENV_WORLD_SIZE) &&
        (read_int(reading, ENV_WORLD_SIZE, 1, INT_MAX, -1, &world_size) < 0 ||
         world_size > 1)) {
        return fail_set(reading->error, FLAUNCH_ENVIRONMENT, -EINVAL,
                        "%s=%d is set and %s is not", ENV_WORLD_SIZE,
                        world_size, ENV_RANK);
    }
    out->launcher = LAUNCHER_NONE;
    out->world_size = 1;
    out->local_world_size = 1;
    explain(out, "none: chosen; a job of one process\n");
    return 0;
}

static bool is_known(const char *name)
{
    int i;

    for (i = LAUNCHER_NONE; i <= LAUNCHER_ENV; i++) {
        if (strcmp(name, launcher_name((enum launcher)i)) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether a record is to be read; says why not. */
static bool is_candidate(const struct reading *reading,
                         const struct record_names *names, const char *wanted)
{
    const char *name = launcher_name(names->launcher);

    if (wanted != NULL && strcmp(wanted, name) != 0) {
        explain(reading->out, "%s: not asked for\n", name);
        return false;
    }
    if (!is_set(reading, names->sign)) {
        explain(reading->out, "%s: no %s\n", name, names->sign);
        return false;
    }
    if (wanted == NULL && names->launcher == LAUNCHER_FLAUNCH &&
        flaunch_is_outer(reading)) {
        explain(reading->out,
                "flaunch: outside; RANK and the like differ from its own\n");
        return false;
    }
    return true;
}

int detect(detect_env_fn *env, void *arg, const char *wanted,
           struct detected *detected_out, struct flaunch_error *error)
{
    struct reading reading = { env, arg, detected_out, error };
    size_t i;

    *detected_out = (struct detected){ 0 };
    if (wanted == NULL || wanted[0] == '\0') {
        wanted = env(ENV_FLAUNCH_LAUNCHER, arg);
    }
    if (wanted != NULL && wanted[0] == '\0') {
        wanted = NULL;
    }
    if (wanted != NULL && !is_known(wanted)) {
        return fail_set(error, FLAUNCH_USAGE, -EINVAL,
                        "unknown launcher %s: flaunch, torchrun, env and none "
                        "are known",
                        wanted);
    }
    for (i = 0; i < N_RECORDS; i++) {
        if (is_candidate(&reading, &records[i], wanted)) {
            return take_record(&reading, &records[i]);
        }
    }
    if (wanted != NULL && strcmp(wanted, "none") != 0) {
        return fail_set(error, FLAUNCH_ENVIRONMENT, -EINVAL,
                        "launcher %s was asked for, and its variables are not "
                        "set",
                        wanted);
    }
    if (wanted != NULL) {
        explain(detected_out, "none: asked for\n");
        detected_out->world_size = 1;
        detected_out->local_world_size = 1;
        return 0;
    }
    return take_none(&reading);
}
