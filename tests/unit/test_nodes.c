/*
 * Which nodes a job has and where they meet: options, Slurm, Kubernetes.
 */
#include "launcher/nodes.h"
#include "launcher/rdzv_conf.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* "NAME=value NAME=value": what a test's environment is. */
static const char *env_of(const char *name, void *arg)
{
    static char values[8][512];
    static unsigned next;
    const char *at = arg;
    size_t len = strlen(name);

    while (at != NULL && *at != '\0') {
        size_t word = strcspn(at, " ");

        if (word > len && strncmp(at, name, len) == 0 && at[len] == '=') {
            char *value = values[next++ % 8];

            (void)snprintf(value, sizeof(values[0]), "%.*s",
                           (int)(word - len - 1), at + len + 1);
            return value;
        }
        at += word + (at[word] == ' ');
    }
    return NULL;
}

/* Options and environment are words between blanks. */
static int resolve(const char *line, const char *env, struct nodes *nodes,
                   struct err *err)
{
    static char words[1024];
    static char *argv[32];
    static char copy[1024];
    struct environ_view view = { .get = env_of };
    struct options options;
    int argc = 0;
    char *word;
    int rc;

    (void)snprintf(words, sizeof(words), "flaunch %s", line);
    for (word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    (void)snprintf(copy, sizeof(copy), "%s", env);
    view.arg = copy;
    rc = options_parse(argc, argv, env_of, copy, &options, err);
    return rc < 0
               ? rc
               : nodes_resolve(&options, &view, "thishost", "NEW", nodes, err);
}

#define ANY AGENT_NO_RANK

#define STEP                                                                   \
    "SLURM_JOB_ID=7 SLURM_STEP_ID=2 SLURM_PROCID=1 SLURM_LOCALID=0 "           \
    "SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 SLURM_GTIDS=1 SLURM_NODEID=1 "      \
    "SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=gpu[01-02] "                   \
    "SLURM_JOB_NUM_NODES=2 SLURM_STEP_RESV_PORTS=12345-12346 "

static void options_say_who_meets_where(void **state)
{
    static const struct {
        const char *line;
        const char *env;
        uint32_t min;
        uint32_t max;
        uint32_t node_rank;
        enum nodes_hosting hosting;
        const char *host;
        const char *address;
        uint16_t port;
        const char *run_id;
    } rows[] = {
        { "p", "", 1, 1, ANY, NODES_HOST_HERE, "", "", 0, "NEW" },
        { "--rdzv-id=j p", "", 1, 1, ANY, NODES_HOST_HERE, "", "", 0, "j" },
        { "--standalone --rdzv-id=j p", "", 1, 1, ANY, NODES_HOST_HERE, "", "",
          0, "NEW" },
        { "--rdzv-backend=c10d p", "", 1, 1, ANY, NODES_HOST_HERE, "", "", 0,
          "none" },
        { "--rdzv-backend=c10d --rdzv-id= p", "", 1, 1, ANY, NODES_HOST_HERE,
          "", "", 0, "NEW" },
        { "--rdzv-endpoint=/x --rdzv-conf=store_type=file p", "", 1, 1, ANY,
          NODES_HOST_HERE, "", "", 0, "none" },
        { "--standalone --nnodes=4 p", "", 1, 1, ANY, NODES_HOST_HERE, "", "",
          0, "NEW" },
        { "--master-port=7 p", "", 1, 1, ANY, NODES_HOST_HERE, "", "", 7,
          "none" },
        { "--nnodes=1 --node-rank=0 --master-addr=x p", "", 1, 1, 0,
          NODES_HOST_HERE, "x", "x", 0, "NEW" },
        { "--nnodes=2 --node_rank=0 --master_addr=h0 p", "", 2, 2, 0,
          NODES_HOST_HERE, "h0", "h0", 29500, "none" },
        { "--nnodes=2 --node_rank=0 p", "", 2, 2, 0, NODES_HOST_HERE, "", "",
          29500, "none" },
        { "--nnodes=2 --node_rank=1 --master_addr=h0 --master_port=99 "
          "--rdzv-id=j p",
          "", 2, 2, 1, NODES_HOST_ELSEWHERE, "h0", "h0", 99, "j" },
        { "--nnodes=2 --master_addr=h0 p", "", 2, 2, ANY, NODES_HOST_BY_ADDRESS,
          "h0", "h0", 29500, "none" },
        { "--nnodes=1:4 --rdzv-backend=c10d --rdzv-endpoint=h0 p", "", 1, 4,
          ANY, NODES_HOST_BY_ADDRESS, "h0", "h0", 29400, "none" },
        { "--nnodes=2 --rdzv-endpoint=h0:77 p", "", 2, 2, ANY,
          NODES_HOST_BY_ADDRESS, "h0", "h0", 77, "none" },
        { "--nnodes=2 --rdzv-endpoint=[fd00::1]:77 p", "", 2, 2, ANY,
          NODES_HOST_BY_ADDRESS, "fd00::1", "fd00::1", 77, "none" },
        { "--nnodes=2 --rdzv-endpoint=fd00::1 p", "", 2, 2, ANY,
          NODES_HOST_BY_ADDRESS, "fd00::1", "fd00::1", 29400, "none" },
        { "--nnodes=2 --master-addr=[::1] p", "", 2, 2, ANY,
          NODES_HOST_BY_ADDRESS, "::1", "::1", 29500, "none" },
        { "--nnodes=2 --rdzv-endpoint=h0 --rdzv-conf=is_host=1 p", "", 2, 2,
          ANY, NODES_HOST_HERE, "h0", "h0", 29400, "none" },
        { "--nnodes=2 --rdzv-endpoint=h0 --rdzv-conf=is_host=false p", "", 2, 2,
          ANY, NODES_HOST_ELSEWHERE, "h0", "h0", 29400, "none" },
        /* Kubeflow's TrainJob. */
        { "p",
          "PET_NNODES=2 PET_NODE_RANK=1 PET_MASTER_ADDR=t-node-0-0.t "
          "PET_MASTER_PORT=29500",
          2, 2, 1, NODES_HOST_ELSEWHERE, "t-node-0-0.t", "t-node-0-0.t", 29500,
          "none" },
        /* An Indexed Job. */
        { "--nnodes=3 --master-addr=j-0.j p", "JOB_COMPLETION_INDEX=2", 3, 3, 2,
          NODES_HOST_ELSEWHERE, "j-0.j", "j-0.j", 29500, "none" },
        { "--nnodes=3 --master-addr=j-0.j --node-rank=0 p",
          "JOB_COMPLETION_INDEX=2", 3, 3, 0, NODES_HOST_HERE, "j-0.j", "j-0.j",
          29500, "none" },
        { "p", "JOB_COMPLETION_INDEX=2", 1, 1, ANY, NODES_HOST_HERE, "", "", 0,
          "NEW" },
        /* Slurm. */
        { "p", STEP, 2, 2, 1, NODES_HOST_ELSEWHERE, "gpu01", "", 12345,
          "slurm-7.2" },
        { "--nnodes=1 p", STEP, 1, 1, ANY, NODES_HOST_HERE, "", "", 0, "NEW" },
        { "--nnodes=2 --rdzv-id=j --master-addr=x --master-port=9 p", STEP, 2,
          2, 1, NODES_HOST_ELSEWHERE, "x", "x", 9, "j" },
        { "p", STEP "SLURM_NODE_ALIASES=gpu01:10.0.0.9:cloud1", 2, 2, 1,
          NODES_HOST_ELSEWHERE, "10.0.0.9", "", 12345, "slurm-7.2" },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nodes nodes;
        struct err err = { 0 };

        if (resolve(rows[i].line, rows[i].env, &nodes, &err) < 0) {
            fail_msg("%s: %s", rows[i].line, err.text);
        }
        assert_int_equal(nodes.min, rows[i].min);
        assert_int_equal(nodes.max, rows[i].max);
        assert_int_equal(nodes.node_rank, rows[i].node_rank);
        assert_int_equal(nodes.hosting, rows[i].hosting);
        assert_string_equal(nodes.host, rows[i].host);
        assert_string_equal(nodes.address, rows[i].address);
        assert_int_equal(nodes.port, rows[i].port);
        assert_string_equal(nodes_run_id(&nodes), rows[i].run_id);
        assert_string_equal(nodes.name, "thishost");
    }
}

static void mistakes_are_named(void **state)
{
    static const struct {
        const char *line;
        const char *env;
        const char *words;
    } rows[] = {
        { "--nnodes= p", "", "--nnodes=: give a number of nodes, or MIN:MAX" },
        { "--nnodes=0 p", "", "--nnodes=0: " },
        { "--nnodes=x p", "", "--nnodes=x: " },
        { "--nnodes=3:2 p", "", "--nnodes=3:2: " },
        { "--nnodes=1: p", "", "--nnodes=1:: " },
        { "--nnodes=1:2:3 p", "", "--nnodes=1:2:3: " },
        { "--nnodes=-1 p", "", "--nnodes=-1: " },
        { "--nnodes=2 --node-rank=2 --master-addr=h p", "",
          "--node-rank=2: give a number from 0 to 1, one less than --nnodes" },
        { "--nnodes=2 --node-rank=x --master-addr=h p", "", "--node-rank=x: " },
        { "--nnodes=2 --master-addr=h p", "JOB_COMPLETION_INDEX=5",
          "JOB_COMPLETION_INDEX=5: " },
        { "--nnodes=2 p", "", "say where the nodes meet" },
        { "--nnodes=2 --node-rank=1 p", "", "say where the nodes meet" },
        { "--nnodes=2 --master-addr= p", "", "--master-addr=: give a host" },
        { "--nnodes=2 --master-addr=a/b p", "", "--master-addr=a/b: give" },
        { "--nnodes=2 --master-addr=-x p", "", "--master-addr=-x: give" },
        { "--nnodes=2 --master-addr=h --master-port=0 p", "",
          "--master-port=0: several nodes need a port" },
        { "--nnodes=2 --rdzv-endpoint=h:0 p", "",
          "--rdzv-endpoint=h:0: several nodes need a port" },
        { "--nnodes=2 --rdzv-endpoint=h:x p", "", "--rdzv-endpoint=h:x: " },
        { "--nnodes=2 --rdzv-endpoint=h:70000 p", "",
          "--rdzv-endpoint=h:70000: " },
        { "--nnodes=2 --rdzv-endpoint=:29400 p", "",
          "--rdzv-endpoint=:29400: " },
        { "--nnodes=2 --rdzv-backend=etcd-v2 --rdzv-endpoint=h p", "",
          "use --rdzv-backend=c10d" },
        { "--rdzv-backend=zoo p", "", "--rdzv-backend=zoo: give static" },
        { "--heartbeat-timeout=1 p", "", "--heartbeat-timeout=1: give 2 to" },
        { "--heartbeat-timeout=x p", "", "--heartbeat-timeout=x: give sec" },
        { "--join-timeout=x p", "", "--join-timeout=x: give seconds" },
        { "--rdzv-conf=is_host=maybe p", "", "is_host=maybe: give true or" },
        { "--rdzv-conf=join_timeout=0 p", "", "join_timeout=0: give seconds" },
        { "--rdzv-conf=join_timeout p", "", "\"join_timeout\" is not KEY" },
        { "--rdzv-conf=a=1,=2 p", "", "\"=2\" is not KEY=VALUE" },
        { "--rdzv-conf=a=1, p", "", "\"\" is not KEY=VALUE" },
        { "--nnodes=2 --master-addr=h --rdzv-conf=store_type=file p", "",
          "meet at a port, not in a file" },
        { "--rdzv-conf=store_type=x p", "", "store_type=x: give tcp or file" },
        /* Slurm: what to do stands in the message. */
        { "p", "SLURM_JOB_ID=9 SLURM_JOB_NUM_NODES=2",
          "srun --nodes=2 --ntasks-per-node=1 flaunch ..." },
        { "p",
          "SLURM_JOB_ID=9 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_LOCALID=0 "
          "SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=4 SLURM_GTIDS=0,1 "
          "SLURM_NODEID=0 SLURM_STEP_NUM_NODES=2",
          "srun --nodes=2 --ntasks-per-node=1 flaunch --nproc-per-node=2" },
        { "p",
          "SLURM_JOB_ID=9 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_LOCALID=0 "
          "SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=4 SLURM_GTIDS=0,1,2,3 "
          "SLURM_NODEID=0 SLURM_STEP_NUM_NODES=1",
          "srun has started 4 flaunch on this node (step 9.0)" },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nodes nodes;
        struct err err = { 0 };

        assert_int_equal(resolve(rows[i].line, rows[i].env, &nodes, &err),
                         -EINVAL);
        if (strstr(err.text, rows[i].words) == NULL) {
            fail_msg("%s: %s", rows[i].line, err.text);
        }
    }
}

static void one_node_of_slurm_is_never_refused(void **state)
{
    static const char *const envs[] = {
        "SLURM_JOB_ID=9 SLURM_JOB_NUM_NODES=1 SLURM_NTASKS=8",
        /* Inside a worker of another flaunch, and its step taken out. */
        "SLURM_JOB_ID=9 SLURM_JOB_NUM_NODES=2 FLAUNCH_RUN_ID=x",
        "SLURM_JOB_ID=9 SLURM_STEP_ID=4294967290 SLURM_JOB_NUM_NODES=1",
        "SLURM_JOB_ID=9 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_LOCALID=0 "
        "SLURM_NTASKS=1 SLURM_STEP_NUM_TASKS=1 SLURM_GTIDS=0 SLURM_NODEID=0 "
        "SLURM_STEP_NUM_NODES=1 SLURM_STEP_NODELIST=n1 SLURM_GPUS_ON_NODE=4",
    };
    struct nodes nodes;
    struct err err;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(envs) / sizeof(envs[0]); i++) {
        assert_int_equal(resolve("p", envs[i], &nodes, &err), 0);
        assert_int_equal(nodes.max, 1);
        assert_int_equal(nodes.n_gpus, i == 3 ? 4 : 0);
    }
}

static void times_come_from_options_and_rdzv_conf(void **state)
{
    static const struct {
        const char *line;
        uint64_t join_ms;
        uint64_t last_call_ms;
        uint64_t lease_ms;
        const char *unknown;
    } rows[] = {
        { "p", 600000, 30000, 10000, "" },
        { "--join-timeout=5 --heartbeat-timeout=2.5 p", 5000, 30000, 2500, "" },
        { "--rdzv-conf=timeout=120 p", 120000, 30000, 10000, "" },
        { "--rdzv-conf=join_timeout=7,timeout=120 p", 7000, 30000, 10000, "" },
        { "--rdzv-conf=timeout=120,join_timeout=7,last_call_timeout=1 p", 7000,
          1000, 10000, "" },
        { "--join-timeout=9 --rdzv-conf=join_timeout=7 p", 9000, 30000, 10000,
          "" },
        { "--rdzv-conf=keep_alive_interval=4,keep_alive_max_attempt=5 p",
          600000, 30000, 20000, "" },
        { "--rdzv-conf=keep_alive_interval=4 p", 600000, 30000, 12000, "" },
        { "--rdzv-conf=read_timeout=3,foo=1,store_type=tcp,bar=2 p", 600000,
          30000, 10000, "foo, bar" },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nodes nodes;
        struct err err = { 0 };

        assert_int_equal(resolve(rows[i].line, "", &nodes, &err), 0);
        assert_true(nodes.join_ms == rows[i].join_ms);
        assert_true(nodes.last_call_ms == rows[i].last_call_ms);
        assert_true(nodes.lease_ms == rows[i].lease_ms);
        assert_string_equal(nodes.unknown, rows[i].unknown);
    }
}

static void a_meeting_place_that_each_machine_has_is_noticed(void **state)
{
    static const struct {
        const char *line;
        bool loopback;
    } rows[] = {
        { "--nnodes=2 --master-addr=localhost p", true },
        { "--nnodes=2 --master-addr=127.0.1.1 p", true },
        { "--nnodes=2 --rdzv-endpoint=[::1]:29400 p", true },
        { "--nnodes=2 --master-addr=h0 p", false },
        { "--nnodes=1 --master-addr=localhost p", false },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nodes nodes;
        struct err err;

        assert_int_equal(resolve(rows[i].line, "", &nodes, &err), 0);
        assert_int_equal(nodes_meet_on_loopback(&nodes), rows[i].loopback);
    }
}

static void a_name_of_this_node_can_be_given(void **state)
{
    struct nodes nodes;
    struct err err;

    (void)state;
    assert_int_equal(resolve("--nnodes=2 --node-rank=0 --local-addr=10.0.0.5 p",
                             "", &nodes, &err),
                     0);
    assert_string_equal(nodes.name, "10.0.0.5");
    assert_string_equal(nodes.address, "10.0.0.5");
    assert_int_equal(
        resolve("--nnodes=2 --node-rank=1 --local-addr=n5 --master-addr=h p",
                "", &nodes, &err),
        0);
    assert_string_equal(nodes.name, "n5");
    assert_string_equal(nodes.address, "h");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_say_who_meets_where),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(one_node_of_slurm_is_never_refused),
        cmocka_unit_test(times_come_from_options_and_rdzv_conf),
        cmocka_unit_test(a_meeting_place_that_each_machine_has_is_noticed),
        cmocka_unit_test(a_name_of_this_node_can_be_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
