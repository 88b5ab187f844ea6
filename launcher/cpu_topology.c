#include "launcher/cpu_topology.h"

#include "launcher/hwloc_api.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's masks may have more bits than CPU_SETSIZE. */
#define MASK_BYTES 8192

/* The NUMA node that a CPU is of; where several are (fast memory beside slow)
 * the first. */
static uint32_t node_of(const struct hwloc_api *api,
                        struct hwloc_topology *topology, unsigned cpu)
{
    unsigned n = api->get_nbobjs_by_depth(topology, HWLOC_API_DEPTH_NUMANODE);
    unsigned i;

    for (i = 0; i < n; i++) {
        const struct hwloc_api_obj *node =
            api->get_obj_by_depth(topology, HWLOC_API_DEPTH_NUMANODE, i);

        if (node != NULL && node->cpuset != NULL &&
            api->bitmap_isset(node->cpuset, cpu) != 0) {
            return node->os_index;
        }
    }
    return 0;
}

static struct affinity_cpu describe(const struct hwloc_api *api,
                                    struct hwloc_topology *topology,
                                    const struct hwloc_api_obj *pu)
{
    struct affinity_cpu cpu = { .cpu = pu->os_index,
                                .core = pu->os_index,
                                .node = node_of(api, topology, pu->os_index) };
    const struct hwloc_api_obj *above;
    bool cached = false;

    for (above = pu->parent; above != NULL; above = above->parent) {
        uint32_t lowest = (uint32_t)api->bitmap_first(above->cpuset);

        if (above->type == HWLOC_API_CORE) {
            cpu.core = lowest;
        } else if (above->type == HWLOC_API_PACKAGE) {
            cpu.socket = above->logical_index;
        } else if (above->type >= HWLOC_API_L1CACHE &&
                   above->type <= HWLOC_API_L5CACHE) {
            cpu.cache = lowest; /* the last we meet is the largest */
            cached = true;
        }
    }
    if (!cached) {
        cpu.cache = cpu.core;
    }
    return cpu;
}

static int by_number(const void *a, const void *b)
{
    const struct affinity_cpu *one = a;
    const struct affinity_cpu *other = b;

    return (one->cpu > other->cpu) - (one->cpu < other->cpu);
}

/* Those of the mask, out of all that hwloc knows. */
static size_t take_cpus(const struct hwloc_api *api,
                        struct hwloc_topology *topology, const uint8_t *mask,
                        unsigned n_pus, int depth, struct affinity_cpu *cpus)
{
    size_t n = 0;
    unsigned i;

    for (i = 0; i < n_pus; i++) {
        const struct hwloc_api_obj *pu =
            api->get_obj_by_depth(topology, depth, i);

        if (pu != NULL && pu->os_index / 8 < MASK_BYTES &&
            (mask[pu->os_index / 8] >> (pu->os_index % 8) & 1) != 0) {
            cpus[n++] = describe(api, topology, pu);
        }
    }
    qsort(cpus, n, sizeof(*cpus), by_number);
    return n;
}

int cpu_topology_read(struct affinity_cpu **cpus_out, size_t *n_cpus_out,
                      struct err *err)
{
    struct hwloc_topology *topology = NULL;
    struct affinity_cpu *cpus = NULL;
    uint8_t mask[MASK_BYTES] = { 0 };
    struct hwloc_api api;
    unsigned n_pus;
    size_t n = 0;
    int depth;
    int rc = hwloc_api_load(&api, err);

    if (rc < 0) {
        return rc;
    }
    if (syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask) < 0) {
        return err_sys(err, -errno, "cannot read which CPUs may be used");
    }
    if (api.topology_init(&topology) < 0 || api.topology_load(topology) < 0) {
        rc = err_set(err, -EIO, "hwloc cannot tell this machine's topology");
        goto out;
    }
    depth = api.get_type_depth(topology, HWLOC_API_PU);
    n_pus = api.get_nbobjs_by_depth(topology, depth);
    cpus = calloc((size_t)n_pus + 1, sizeof(*cpus));
    if (cpus == NULL) {
        rc = err_sys(err, -ENOMEM, "cannot read this machine's topology");
        goto out;
    }
    n = take_cpus(&api, topology, mask, n_pus, depth, cpus);
    if (n == 0) {
        rc = err_set(err, -EIO, "hwloc knows none of the CPUs we may use");
    }
out:
    if (topology != NULL) {
        api.topology_destroy(topology);
    }
    if (rc < 0) {
        free(cpus);
        return rc;
    }
    *cpus_out = cpus;
    *n_cpus_out = n;
    return 0;
}
