#include "launcher/explain.h"

#include <inttypes.h>
#include <string.h>

static void print_command(const struct config *config, FILE *file)
{
    char **argument;

    (void)fprintf(file, "command: %s\n", config->command.path);
    for (argument = config->command.argv; *argument != NULL; argument++) {
        (void)fprintf(file, "  argv[%td]: %s\n",
                      argument - config->command.argv, *argument);
    }
}

/*
 * This node's place, as far as it is known: with several nodes as if each had
 * as many workers.
 */
static struct node_place guess_place(const struct config *config)
{
    const struct nodes *nodes = &config->nodes;
    struct node_place place = ranks_one_node(config->n_workers);

    if (nodes->node_rank != AGENT_NO_RANK) {
        place.group_rank = nodes->node_rank;
    }
    place.n_nodes = nodes->max;
    place.base_rank = place.group_rank * config->n_workers;
    place.world_size = nodes->max * config->n_workers;
    place.role_base_rank = place.base_rank;
    place.role_world_size = place.world_size;
    return place;
}

static int print_rank(const struct config *config,
                      const struct node_place *node, uint32_t local_rank,
                      FILE *file)
{
    struct place place = ranks_place(node, local_rank);
    struct env_list own;
    char cpus[256];
    int rc = worker_env_own(
        &place, NULL, config->gpus != NULL ? config->gpus[local_rank] : NULL,
        &own);
    size_t i;

    if (rc < 0) {
        return rc;
    }
    (void)fprintf(file, "rank %u:", place.rank);
    for (i = 0; i < own.n; i++) {
        (void)fprintf(file, " %s", own.strings[i]);
    }
    if (config->binding.bytes > 0) {
        cpu_masks_print(&config->binding, local_rank, cpus, sizeof(cpus));
        (void)fprintf(file, "; on CPUs %s", cpus);
    }
    (void)fputc('\n', file);
    env_list_destroy(&own);
    return 0;
}

/* Whether the workers get this string from us, not from our environment. */
static bool is_new(const char *string, char *const *environment)
{
    for (; *environment != NULL; environment++) {
        if (strcmp(*environment, string) == 0) {
            return false;
        }
    }
    return true;
}

static void print_one_node(const struct config *config, FILE *file)
{
    (void)fprintf(file, "nodes: 1\nworkers: %u\nworld size: %u\n",
                  config->n_workers, config->n_workers);
    (void)fprintf(file, "store: 127.0.0.1, ");
    if (config->job.master_port == 0) {
        (void)fprintf(file, "a free port (MASTER_PORT=0 below)\n");
    } else {
        (void)fprintf(file, "port %u\n", config->job.master_port);
    }
}

static void print_nodes(const struct config *config, FILE *file)
{
    static const char *const hosting[] = { "this node hosts the job",
                                           "this node joins",
                                           "this node hosts the job if the "
                                           "address is its own, else it "
                                           "joins" };
    const struct nodes *nodes = &config->nodes;

    if (nodes->min == nodes->max) {
        (void)fprintf(file, "nodes: %u\n", nodes->max);
    } else {
        (void)fprintf(file, "nodes: %u to %u\n", nodes->min, nodes->max);
    }
    if (nodes->node_rank != AGENT_NO_RANK) {
        (void)fprintf(file, "node rank: %u\n", nodes->node_rank);
    }
    (void)fprintf(
        file, "workers: %u on this node\nmeeting at: %s, port %u; %s\n",
        config->n_workers, nodes->host[0] != '\0' ? nodes->host : "this node",
        nodes->port, hosting[nodes->hosting]);
    (void)fprintf(file, "job: %s\n", config->job.run_id);
}

static void print_environment(const struct config *config,
                              const struct env_list *shared,
                              char *const *environment, FILE *file)
{
    size_t i;

    (void)fprintf(file, "environment of every worker, beside ours:\n");
    for (i = 0; i < shared->n; i++) {
        if (is_new(shared->strings[i], environment)) {
            (void)fprintf(file, "  %s\n", shared->strings[i]);
        }
    }
    for (i = 0; environment[i] != NULL; i++) {
        size_t len = strcspn(environment[i], "=");

        if (!config->job.keep_env &&
            worker_env_is_scrubbed(environment[i], len)) {
            (void)fprintf(file, "  without our %.*s\n", (int)len,
                          environment[i]);
        }
    }
}

int explain_plan(const struct config *config, char *const *environment,
                 FILE *file)
{
    struct node_place place = guess_place(config);
    struct env_list shared;
    uint32_t rank;
    int rc = worker_env_shared(environment, &config->job, &shared);

    if (rc < 0) {
        return rc;
    }
    if (config->nodes.max == 1) {
        print_one_node(config, file);
    } else {
        print_nodes(config, file);
    }
    print_command(config, file);
    print_environment(config, &shared, environment, file);
    env_list_destroy(&shared);
    if (config->nodes.max > 1) {
        (void)fprintf(file,
                      "ranks, if each of %u nodes has %u worker%s and this is "
                      "node %u:\n",
                      place.n_nodes, place.n_workers,
                      place.n_workers == 1 ? "" : "s", place.group_rank);
    }
    for (rank = 0; rank < config->n_workers && rc == 0; rank++) {
        rc = print_rank(config, &place, rank, file);
    }
    return rc;
}

void explain_sources(const struct options *options, const struct config *config,
                     FILE *file)
{
    int id;

    (void)fprintf(file, "program: %s (the command line), executed as %s\n",
                  config->program[0], config->command.path);
    (void)fprintf(file, "workers: %u\n", config->n_workers);
    for (id = 0; id < N_OPTIONS; id++) {
        char from[80];

        options_source_name(options, (enum option_id)id, from, sizeof(from));
        if (options->values[id].text != NULL) {
            (void)fprintf(file, "--%s=%s, from %s\n", option_table[id].name,
                          options->values[id].text, from);
        }
    }
    if (config->nodes.from != NULL) {
        (void)fprintf(file,
                      "from %s: nodes %u, this node %u, meeting at %s port %u, "
                      "job %s\n",
                      config->nodes.from, config->nodes.max,
                      config->nodes.node_rank, config->nodes.host,
                      config->nodes.port, config->job.run_id);
    }
    (void)fprintf(file, "time before SIGKILL: %" PRIu64 " ms\n",
                  config->shutdown_ms);
}
