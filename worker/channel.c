#include "worker/channel.h"

#include "common/env_names.h"
#include "common/parse.h"
#include "worker/fail.h"
#include "common/slurm_step.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define WHY_MAX 256

struct choice {
    const struct environ_view *env;
    const char *url;
    struct detected *out;
    struct flaunch_error *error;
};

bool channel_url_gives_address(const char *url)
{
    return url != NULL && strcmp(url, "env://") != 0;
}

/*
 * Whether somebody answers PMI here. A process that inherits the variable
 * without the descriptor would write into whatever has that number now.
 */
bool channel_pmi_is_live(const struct environ_view *env, char *why,
                         size_t why_size)
{
    int fd;

    if (environ_get(env, "PMI_PORT") != NULL &&
        environ_get(env, "PMI_ID") != NULL) {
        return true;
    }
    if (environ_int(env, "PMI_FD", 0, INT_MAX, &fd, why, why_size) !=
        ENVIRON_OK) {
        return false;
    }
    if (!env->is_socket(fd, env->arg)) {
        (void)snprintf(why, why_size,
                       "PMI_FD=%d is no open socket: an outer launcher's", fd);
        return false;
    }
    return true;
}

static int bad(const struct choice *choice, const char *text)
{
    return fail_set(choice->error, FLAUNCH_ENVIRONMENT, -EINVAL, "%s", text);
}

static int take_host_port(const struct choice *choice, const char *name,
                          const char *text)
{
    struct detected *out = choice->out;

    if (text == NULL ||
        parse_host_port(text, out->host, sizeof(out->host), &out->port) < 0) {
        return fail_set(choice->error, FLAUNCH_ENVIRONMENT, -EINVAL,
                        "%s=%.300s is no HOST:PORT", name,
                        text != NULL ? text : "");
    }
    return 0;
}

/* Two variables as host and port: whether both are there and good. */
static enum environ_result take_address(const struct choice *choice,
                                        const char *host_name,
                                        const char *port_name, char *why,
                                        size_t why_size)
{
    const char *host = environ_get(choice->env, host_name);
    struct detected *out = choice->out;
    enum environ_result result;
    int port;

    if (host == NULL || host[0] == '\0') {
        return environ_missing(why, why_size, host_name);
    }
    if (strlen(host) >= sizeof(out->host)) {
        (void)snprintf(why, why_size, "%s is longer than %zu bytes", host_name,
                       sizeof(out->host) - 1);
        return ENVIRON_BAD;
    }
    result =
        environ_int(choice->env, port_name, 1, 65535, &port, why, why_size);
    if (result == ENVIRON_OK) {
        (void)snprintf(out->host, sizeof(out->host), "%s", host);
        out->port = (uint16_t)port;
    }
    return result;
}

static int need_address(const struct choice *choice, const char *host_name,
                        const char *port_name)
{
    char why[WHY_MAX];

    return take_address(choice, host_name, port_name, why, sizeof(why)) ==
                   ENVIRON_OK
               ? 0
               : bad(choice, why);
}

static int take_url(const struct choice *choice)
{
    const char *url = choice->url;
    struct detected *out = choice->out;

    if (strncmp(url, "tcp://", 6) == 0) {
        out->channel = CHANNEL_ADDRESS;
        return take_host_port(choice, "dist_url", url + 6);
    }
    if (strncmp(url, "file://", 7) != 0 || url[7] != '/') {
        return fail_set(choice->error, FLAUNCH_USAGE, -EINVAL,
                        "dist_url=%.200s: env://, tcp://HOST:PORT and "
                        "file:///PATH are known",
                        url);
    }
    if (strlen(url + 7) >= sizeof(out->path)) {
        return fail_set(choice->error, FLAUNCH_USAGE, -EINVAL,
                        "dist_url: the path is longer than %zu bytes",
                        sizeof(out->path) - 1);
    }
    out->channel = CHANNEL_FILE;
    (void)snprintf(out->path, sizeof(out->path), "%s", url + 7);
    return 0;
}

/* PMI's own numbers, where it gives them, must be those of the record: in a
 * shell that mpirun started, they may belong to the outer step. */
static bool pmi_fits(const struct choice *choice, char *why, size_t why_size)
{
    const struct detected *out = choice->out;
    int size = out->world_size;
    int rank = out->rank;

    if (out->launcher == LAUNCHER_OPENMPI ||
        !channel_pmi_is_live(choice->env, why, why_size)) {
        return false;
    }
    if (environ_is_set(choice->env, "PMI_RANK") &&
        environ_int(choice->env, "PMI_RANK", 0, INT_MAX, &rank, why,
                    why_size) != ENVIRON_OK) {
        return false;
    }
    if (environ_is_set(choice->env, "PMI_SIZE") &&
        environ_int(choice->env, "PMI_SIZE", 1, INT_MAX, &size, why,
                    why_size) != ENVIRON_OK) {
        return false;
    }
    return (out->rank < 0 || rank == out->rank) &&
           (out->world_size == 0 || size == out->world_size);
}

static bool pmix_fits(const struct choice *choice)
{
    char why[WHY_MAX];
    int rank;

    return environ_is_set(choice->env, "PMIX_NAMESPACE") &&
           environ_int(choice->env, "PMIX_RANK", 0, INT_MAX, &rank, why,
                       sizeof(why)) == ENVIRON_OK &&
           (choice->out->rank < 0 || rank == choice->out->rank);
}

static void take_slurm(const struct choice *choice)
{
    struct detected *out = choice->out;
    struct slurm_step step;
    char why[WHY_MAX];

    if (slurm_step_read(choice->env, &step, why, sizeof(why)) == ENVIRON_OK) {
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
static int choose_foreign(const struct choice *choice)
{
    struct detected *out = choice->out;
    char pmi_why[WHY_MAX] = "";
    char why[WHY_MAX] = "";
    enum environ_result address = take_address(
        choice, ENV_MASTER_ADDR, ENV_MASTER_PORT, why, sizeof(why));

    if (address == ENVIRON_BAD) {
        return bad(choice, why);
    }
    if (address != ENVIRON_OK && out->launcher == LAUNCHER_SLURM) {
        take_slurm(choice);
    }
    if (pmi_fits(choice, pmi_why, sizeof(pmi_why))) {
        out->channel = CHANNEL_PMI;
    } else if (pmix_fits(choice)) {
        out->channel = CHANNEL_PMIX;
    } else if (out->world_size == 0) {
        return fail_set(choice->error, FLAUNCH_ENVIRONMENT, -EINVAL,
                        "launcher %s: how many ranks there are is asked of PMI "
                        "or PMIx, and neither is here",
                        launcher_name(out->launcher));
    } else if (address == ENVIRON_OK) {
        out->channel = CHANNEL_ADDRESS;
    } else if (out->launcher == LAUNCHER_SLURM) {
        out->channel = CHANNEL_SLURM;
    } else {
        return fail_set(choice->error, FLAUNCH_ENVIRONMENT, -EINVAL,
                        "launcher %s: the ranks have no way to meet: neither "
                        "PMI nor PMIx is here and %s; set %s and %s",
                        launcher_name(out->launcher), why, ENV_MASTER_ADDR,
                        ENV_MASTER_PORT);
    }
    return 0;
}

static int choose(const struct choice *choice)
{
    const char *served = environ_get(choice->env, ENV_USE_AGENT_STORE);
    struct detected *out = choice->out;

    if (out->world_size == 1) {
        out->channel = CHANNEL_NONE;
        return 0;
    }
    if (channel_url_gives_address(choice->url)) {
        return out->world_size == 0
                   ? fail_set(choice->error, FLAUNCH_USAGE, -EINVAL,
                              "dist_url and launcher %s: the number of ranks "
                              "is known to PMI or PMIx only",
                              launcher_name(out->launcher))
                   : take_url(choice);
    }
    switch (out->launcher) {
    case LAUNCHER_FLAUNCH:
        out->channel = CHANNEL_STORE;
        return take_host_port(choice, ENV_FLAUNCH_STORE,
                              environ_get(choice->env, ENV_FLAUNCH_STORE));
    case LAUNCHER_TORCHRUN:
    case LAUNCHER_ENV:
        /* torchrun's own rule: exactly this word. */
        out->channel = served != NULL && strcmp(served, "True") == 0
                           ? CHANNEL_STORE
                           : CHANNEL_ADDRESS;
        return need_address(choice, ENV_MASTER_ADDR, ENV_MASTER_PORT);
    case LAUNCHER_HOROVOD:
        out->channel = CHANNEL_HOROVOD;
        return need_address(choice, "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                            "HOROVOD_GLOO_RENDEZVOUS_PORT");
    default:
        return choose_foreign(choice);
    }
}

void channel_explain(struct detected *detected)
{
    switch (detected->channel) {
    case CHANNEL_STORE:
    case CHANNEL_ADDRESS:
        detected_explain(
            detected, "store %s port %u%s", detected->host, detected->port,
            detected->channel == CHANNEL_STORE ? "" : ", by rank 0");
        break;
    case CHANNEL_PMI:
        detected_explain(detected, "meeting over PMI");
        break;
    case CHANNEL_PMIX:
        detected_explain(detected, "meeting over PMIx");
        break;
    case CHANNEL_HOROVOD:
        detected_explain(detected, "meeting in Horovod's store %s port %u",
                         detected->host, detected->port);
        break;
    case CHANNEL_SLURM:
        detected_explain(detected, "store by rank 0 on %s, port %u to %d",
                         detected->host, detected->port,
                         detected->port + detected->n_ports - 1);
        break;
    case CHANNEL_FILE:
        detected_explain(detected, "meeting in the file %s", detected->path);
        break;
    case CHANNEL_NONE:
        detected_explain(detected, "nobody to meet");
        break;
    }
}

int channel_choose(const struct environ_view *env, const char *url,
                   struct detected *detected, struct flaunch_error *error)
{
    const struct choice choice = { env, url, detected, error };

    return choose(&choice);
}
