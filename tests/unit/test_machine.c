/*
 * What is read of a machine: CPUs, GPUs, processes, ELF files, ports.
 */
#include "tests/unit/listening.h"
#include "launcher/cgroup.h"
#include "launcher/cpu_count.h"
#include "launcher/elf_needs.h"
#include "launcher/gpu_count.h"
#include "launcher/gpu_place.h"
#include "launcher/port_holder.h"
#include "launcher/proc_table.h"
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A directory that stands for /. */
static int setup(void **state)
{
    char *root = strdup("/tmp/flaunch-unit-XXXXXX");

    if (root == NULL || mkdtemp(root) == NULL) {
        return -1;
    }
    *state = root;
    return 0;
}

static int teardown(void **state)
{
    char command[PATH_MAX];

    (void)snprintf(command, sizeof(command), "rm -rf '%s'", (char *)*state);
    free(*state);
    return system(command);
}

static void put_file(const char *root, const char *name, const char *text)
{
    char path[PATH_MAX];
    char *slash;
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s%s", root, name);
    for (slash = strchr(path + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0755);
        *slash = '/';
    }
    file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

static bool near(double a, double b)
{
    return a - b < 1e-9 && b - a < 1e-9;
}

static void the_smallest_quota_of_version_2_counts(void **state)
{
    const char *root = *state;

    put_file(root, "/proc/self/mountinfo",
             "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put_file(root, "/proc/self/cgroup", "0::/a/b\n");
    put_file(root, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    put_file(root, "/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
    assert_true(near(cpu_quota(root), 2.5));
    put_file(root, "/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
    assert_true(near(cpu_quota(root), 1.5));
}

static void a_quota_of_version_1_counts(void **state)
{
    const char *root = *state;

    put_file(root, "/proc/self/mountinfo",
             "31 23 0:27 / /cg/cpu rw shared:9 - cgroup cgroup "
             "rw,cpu,cpuacct\n"
             "32 23 0:28 / /cg/memory rw - cgroup cgroup rw,memory\n");
    put_file(root, "/proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/j\n");
    put_file(root, "/cg/cpu/j/cpu.cfs_quota_us", "300000\n");
    put_file(root, "/cg/cpu/j/cpu.cfs_period_us", "100000\n");
    put_file(root, "/cg/cpu/cpu.cfs_quota_us", "-1\n");
    put_file(root, "/cg/cpu/cpu.cfs_period_us", "100000\n");
    assert_true(near(cpu_quota(root), 3));
}

static void no_quota_is_none(void **state)
{
    assert_true(near(cpu_quota(*state), 0));
    put_file(*state, "/proc/self/mountinfo", "garbage - cgroup2\n\n - \n");
    assert_true(near(cpu_quota(*state), 0));
    assert_true(cpu_count() >= 1);
}

static void processes_killed_for_lack_of_memory_are_counted(void **state)
{
    const char *root = *state;

    assert_int_equal(cgroup_oom_kills(root), -1);
    put_file(root, "/proc/self/mountinfo",
             "30 23 0:26 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put_file(root, "/proc/self/cgroup", "0::/docker/x/job\n");
    put_file(root, "/sys/fs/cgroup/job/memory.events",
             "low 0\nmax 9\noom 4\noom_kill 3\noom_group_kill 1\n");
    assert_int_equal(cgroup_oom_kills(root), 3);
    put_file(root, "/proc/self/mountinfo",
             "31 23 0:27 / /cg/mem rw - cgroup cgroup rw,memory\n");
    put_file(root, "/proc/self/cgroup", "5:memory:/m\n0::/\n");
    put_file(root, "/cg/mem/m/memory.oom_control",
             "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n");
    assert_int_equal(cgroup_oom_kills(root), 7);
}

static void gpus_are_counted_as_cuda_would(void **state)
{
    static const struct {
        const char *visible;
        unsigned n;
    } rows[] = {
        { NULL, 3 },
        { "", 0 },
        { "0", 1 },
        { "2,0", 2 },
        { "0,7,1", 1 },
        { "-1", 0 },
        { "0,-1,1", 1 },
        { " 0 , 1 ", 2 },
        { "GPU-8932f937", 1 },
        { "x", 0 },
        { "MIG-a,MIG-b", 2 },
        { "0x1", 0 },
        { "NoDevFiles", 0 },
    };
    const char *root = *state;
    size_t i;

    assert_int_equal(gpu_count(root, NULL), 0);
    put_file(root, "/dev/nvidia0", "");
    put_file(root, "/dev/nvidia1", "");
    put_file(root, "/dev/nvidia2", "");
    put_file(root, "/dev/nvidiactl", "");
    put_file(root, "/dev/nvidia-uvm", "");
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(gpu_count(root, rows[i].visible), rows[i].n);
    }
}

#define GPU_DIR "/proc/driver/nvidia/gpus/"

static void gpus_are_placed_by_their_bus(void **state)
{
    static const struct {
        const char *visible;
        uint32_t n;
        uint32_t first;
    } rows[] = {
        { NULL, 2, 0 },       { "1", 1, 1 },        { "1,0", 2, 1 },
        { "1,7,0", 1, 1 },    { "", 0, 0 },         { "GPU-bb", 1, 1 },
        { "GPU-bb,x", 1, 1 }, { "GPU-zzzz", 0, 0 },
    };
    struct gpu_places places;
    const char *root = *state;
    struct err err = { 0 };
    size_t i;

    assert_int_equal(gpu_places_read(root, NULL, &places, &err), 0);
    assert_int_equal(places.n_visible, 0);
    put_file(root, GPU_DIR "0000:AF:00.0/information",
             "Model: x\nGPU UUID:  GPU-bbcc\nDevice Minor: \t 0\n");
    put_file(root, GPU_DIR "0000:3b:00.0/information",
             "GPU UUID:  GPU-aabb\nDevice Minor: 4\n");
    /* Not in this container. */
    put_file(root, GPU_DIR "0000:1b:00.0/information",
             "GPU UUID:  GPU-ccdd\nDevice Minor: 5\n");
    put_file(root, "/dev/nvidia0", "");
    put_file(root, "/dev/nvidia4", "");
    put_file(root, "/sys/bus/pci/devices/0000:AF:00.0/numa_node", "1\n");
    put_file(root, "/sys/bus/pci/devices/0000:3b:00.0/numa_node", "-1\n");
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(gpu_places_read(root, rows[i].visible, &places, &err),
                         0);
        assert_int_equal(places.n, 2);
        assert_int_equal(places.nodes[0], 0);
        assert_int_equal(places.nodes[1], 1);
        assert_int_equal(places.n_visible, rows[i].n);
        if (rows[i].n > 0) {
            assert_int_equal(places.visible[0], rows[i].first);
        }
    }
    assert_int_equal(gpu_places_read(root, "MIG-x", &places, &err), -EINVAL);
    assert_non_null(strstr(err.text, "MIG-x"));
}

static void a_line_of_proc_is_read_whatever_the_name(void **state)
{
    struct proc proc;

    (void)state;
    assert_int_equal(proc_stat_parse("7 (sh) S 1 2 3 4", &proc), 0);
    assert_int_equal(proc.pid, 7);
    assert_int_equal(proc.parent, 1);
    assert_int_equal(proc.group, 2);
    assert_int_equal(proc.state, 'S');
    assert_string_equal(proc.name, "sh");
    assert_int_equal(proc_stat_parse("8 (a) Z 9) R 5 6", &proc), 0);
    assert_string_equal(proc.name, "a) Z 9");
    assert_int_equal(proc.parent, 5);
    assert_int_equal(proc_stat_parse("", &proc), -EINVAL);
    assert_int_equal(proc_stat_parse("9 (sh", &proc), -EINVAL);
    assert_int_equal(proc_stat_parse("9 )sh( S 1 2", &proc), -EINVAL);
    assert_int_equal(proc_stat_parse("-9 (sh) S 1 2", &proc), -EINVAL);
}

static void descendants_are_marked_and_skipped_ones_are_not(void **state)
{
    struct proc procs[] = {
        { .pid = 50, .parent = 40 }, { .pid = 10, .parent = 1 },
        { .pid = 30, .parent = 20 }, { .pid = 20, .parent = 10 },
        { .pid = 40, .parent = 10 }, { .pid = 60, .parent = 61 },
        { .pid = 61, .parent = 60 }, /* a ring */
    };
    struct proc_table table = { .procs = procs, .n = 7, .cap = 7 };
    const pid_t pids[] = { 40 };
    const struct proc_skip none = { 0 };
    const struct proc_skip one = { .pids = pids, .n_pids = 1 };
    const struct proc_skip named = { .names = "tail,python3.12-long-name" };
    size_t i;

    (void)state;
    assert_int_equal(proc_table_mark(&table, 10, &none), 4);
    (void)strcpy(procs[3].name, "python3.12-long"); /* cut by the kernel */
    assert_int_equal(proc_table_mark(&table, 10, &named), 2);
    (void)strcpy(procs[3].name, "python3.12");
    assert_int_equal(proc_table_mark(&table, 10, &named), 4);
    assert_int_equal(proc_table_mark(&table, 10, &one), 2);
    for (i = 0; i < table.n; i++) {
        assert_int_equal(procs[i].descendant,
                         procs[i].pid == 20 || procs[i].pid == 30);
    }
}

static void the_real_table_holds_this_process(void **state)
{
    const struct proc_skip none = { 0 };
    struct proc_table table = { 0 };
    pid_t child = fork();
    size_t i;
    bool found = false;

    (void)state;
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    assert_int_equal(proc_table_scan(&table), 0);
    assert_true(proc_table_mark(&table, getpid(), &none) >= 1);
    for (i = 0; i < table.n; i++) {
        found =
            found || (table.procs[i].pid == child && table.procs[i].descendant);
    }
    assert_true(found);
    assert_false(proc_is_shell(child));
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    proc_table_destroy(&table);
}

static void needed_libraries_are_found_in_real_files(void **state)
{
    (void)state;
    assert_true(elf_file_needs("/proc/self/exe", "libcmocka"));
    assert_true(elf_file_needs("/proc/self/exe", "libc.so"));
    assert_false(elf_file_needs("/proc/self/exe", "libmpi"));
    assert_false(elf_file_needs("/no/such/file", "libc"));
    assert_false(elf_file_needs("/etc/passwd", "libc"));
    assert_false(elf_file_needs("/", "libc"));
}

/* Every prefix of a real file, and every byte of its head spoilt. */
static void broken_files_are_read_within_their_bounds(void **state)
{
    static uint8_t whole[1 << 16];
    FILE *file = fopen("/bin/true", "re");
    size_t len;
    size_t i;

    (void)state;
    assert_non_null(file);
    len = fread(whole, 1, sizeof(whole), file);
    (void)fclose(file);
    for (i = 0; i < 4096 && i < len; i += 7) {
        uint8_t *copy = malloc(i + 1);

        assert_non_null(copy);
        memcpy(copy, whole, i);
        assert_false(elf_needs(copy, i, "libmpi"));
        free(copy);
    }
    for (i = 0; i < 1024 && i < len; i++) {
        uint8_t old = whole[i];

        whole[i] = (uint8_t)~old;
        assert_false(elf_needs(whole, len, "libmpi"));
        whole[i] = old;
    }
}

static void the_holder_of_a_port_is_named(void **state)
{
    char text[256];
    char wanted[64];
    uint16_t port;
    int fd;

    (void)state;
    assert_int_equal(listen_one(NET_LOOPBACK, 0, &fd, &port, NULL), 0);
    port_holder_describe(port, text, sizeof(text));
    (void)snprintf(wanted, sizeof(wanted), "pid %ld (", (long)getpid());
    assert_non_null(strstr(text, wanted));
    (void)close(fd);
    assert_int_equal(listen_one(NET_ALL, 0, &fd, &port, NULL), 0);
    port_holder_describe(port, text, sizeof(text));
    assert_non_null(strstr(text, wanted));
    (void)close(fd);
    port_holder_describe(1, text, sizeof(text));
    assert_string_equal(text, "an unknown process");
}

static void addresses_of_this_machine_are_known(void **state)
{
    static const struct {
        const char *text;
        bool ours;
        const char *shown;
    } cases[] = {
        { "127.0.0.1", true, "127.0.0.1" },
        { "127.9.9.9", true, "127.9.9.9" }, /* listed nowhere */
        { "198.51.100.1", false, "198.51.100.1" },
        { "2001:db8::1", false, "2001:db8::1" },
        { "::ffff:198.51.100.1", false, "198.51.100.1" },
    };
    struct addrinfo hints = { .ai_flags = AI_NUMERICHOST };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct addrinfo *list;
        char shown[64];

        assert_int_equal(getaddrinfo(cases[i].text, NULL, &hints, &list), 0);
        assert_int_equal(net_is_ours(list->ai_addr), cases[i].ours);
        net_address_text(list->ai_addr, shown, sizeof(shown));
        assert_string_equal(shown, cases[i].shown);
        freeaddrinfo(list);
    }
}

/* Several sockets of ours share a port; nobody else gets it. */
static void a_port_has_several_queues(void **state)
{
    struct net_where where = { .scope = NET_LOOPBACK };
    struct net_listeners listeners;
    struct net_listeners copy;
    struct net_listeners rival;
    size_t i;

    (void)state;
    assert_int_equal(net_listeners_for(0), 1);
    assert_int_equal(net_listeners_for(2999), 1);
    assert_int_equal(net_listeners_for(18000), 7);
    assert_int_equal(net_listeners_for(10000000), NET_LISTENERS_MAX);
    assert_int_equal(net_listeners_open(&where, 4, &listeners, NULL), 0);
    assert_int_equal(listeners.n, 4);
    for (i = 0; i < listeners.n; i++) {
        struct sockaddr_in name;
        socklen_t len = sizeof(name);

        assert_int_equal(
            getsockname(listeners.fds[i], (struct sockaddr *)&name, &len), 0);
        assert_int_equal(net_port_of((struct sockaddr *)&name), listeners.port);
        assert_true(net_is_loopback((struct sockaddr *)&name));
        assert_int_equal(fcntl(listeners.fds[i], F_GETFD), FD_CLOEXEC);
    }
    where.port = listeners.port;
    assert_int_equal(net_listeners_open(&where, 1, &rival, NULL), -EADDRINUSE);
    assert_int_equal(net_listeners_open(&where, 4, &rival, NULL), -EADDRINUSE);
    assert_int_equal(net_listeners_copy(&listeners, &copy), 0);
    net_listeners_close(&listeners);
    assert_int_equal(net_listeners_open(&where, 1, &rival, NULL), -EADDRINUSE);
    net_listeners_close(&copy);
    assert_int_equal(net_listeners_open(&where, 1, &rival, NULL), 0);
    net_listeners_close(&rival);
}

static void one_address_can_be_listened_at(void **state)
{
    struct sockaddr_in address;
    socklen_t len = sizeof(address);
    struct err err;
    uint16_t port;
    int other;
    int fd;

    (void)state;
    assert_int_equal(
        listen_at(&(struct net_where){ NET_ADDRESS, "127.0.0.2", 0 }, &fd,
                  &port, NULL),
        0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    assert_int_equal(ntohl(address.sin_addr.s_addr), 0x7f000002);
    assert_int_equal(ntohs(address.sin_port), port);
    assert_int_equal(
        listen_at(&(struct net_where){ NET_ADDRESS, "127.0.0.2", port }, &other,
                  &port, &err),
        -EADDRINUSE);
    (void)close(fd);
    assert_int_equal(
        listen_at(&(struct net_where){ NET_ADDRESS, "localhost", 0 }, &fd,
                  &port, &err),
        -EINVAL);
    assert_string_equal(err.text, "localhost is no address");
    assert_int_equal(
        listen_at(&(struct net_where){ NET_ADDRESS, "198.51.100.1", 0 }, &fd,
                  &port, &err),
        -EADDRNOTAVAIL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_of_this_machine_are_known),
        cmocka_unit_test(one_address_can_be_listened_at),
        cmocka_unit_test(a_port_has_several_queues),
        TEST(the_smallest_quota_of_version_2_counts),
        TEST(a_quota_of_version_1_counts),
        TEST(no_quota_is_none),
        TEST(processes_killed_for_lack_of_memory_are_counted),
        TEST(gpus_are_counted_as_cuda_would),
        TEST(gpus_are_placed_by_their_bus),
        cmocka_unit_test(a_line_of_proc_is_read_whatever_the_name),
        cmocka_unit_test(descendants_are_marked_and_skipped_ones_are_not),
        cmocka_unit_test(the_real_table_holds_this_process),
        cmocka_unit_test(needed_libraries_are_found_in_real_files),
        cmocka_unit_test(broken_files_are_read_within_their_bounds),
        cmocka_unit_test(the_holder_of_a_port_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
