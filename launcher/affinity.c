#include "launcher/affinity.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int affinity_mode_parse(const char *text, enum affinity_mode *mode_out)
{
    static const char *const names[] = { "node", "socket", "exclusive",
                                         "core-complex" };
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *mode_out = (enum affinity_mode)i;
            return 0;
        }
    }
    return -EINVAL;
}

/* Where a worker belongs: its node, and its turn among those that share it. */
struct seat {
    uint32_t node;
    uint32_t turn;
    uint32_t n_turns;
};

/* Cores or caches of one node, and how many of its CPUs are in each. */
struct part {
    uint32_t name; /* the lowest CPU */
    uint32_t n_cpus;
};

static int by_name(const void *a, const void *b)
{
    const struct part *one = a;
    const struct part *other = b;

    return (one->name > other->name) - (one->name < other->name);
}

/* The larger one first. */
static int by_size(const void *a, const void *b)
{
    const struct part *one = a;
    const struct part *other = b;

    return one->n_cpus != other->n_cpus
               ? (one->n_cpus < other->n_cpus) - (one->n_cpus > other->n_cpus)
               : by_name(a, b);
}

static uint32_t core_of(const struct affinity_cpu *cpu)
{
    return cpu->core;
}

static uint32_t cache_of(const struct affinity_cpu *cpu)
{
    return cpu->cache;
}

/* The parts of a node by name: how many; parts has room for every CPU. */
static size_t parts_of(const struct affinity_machine *machine, uint32_t node,
                       uint32_t (*of)(const struct affinity_cpu *),
                       struct part *parts)
{
    size_t n = 0;
    size_t i;
    size_t k;

    for (i = 0; i < machine->n_cpus; i++) {
        if (machine->cpus[i].node != node) {
            continue;
        }
        for (k = 0; k < n && parts[k].name != of(&machine->cpus[i]); k++) {
        }
        if (k == n) {
            parts[n++] = (struct part){ .name = of(&machine->cpus[i]) };
        }
        parts[k].n_cpus++;
    }
    qsort(parts, n, sizeof(*parts), by_name);
    return n;
}

static void mask_add(uint8_t *mask, uint32_t cpu)
{
    mask[cpu / 8] |= (uint8_t)(1U << (cpu % 8));
}

/* Add the node's CPUs that are in one of these parts. */
static void add_parts(const struct affinity_machine *machine, uint32_t node,
                      uint32_t (*of)(const struct affinity_cpu *),
                      const struct part *parts, size_t n, uint8_t *mask)
{
    size_t i;
    size_t k;

    for (i = 0; i < machine->n_cpus; i++) {
        for (k = 0; k < n && machine->cpus[i].node == node; k++) {
            if (parts[k].name == of(&machine->cpus[i])) {
                mask_add(mask, machine->cpus[i].cpu);
            }
        }
    }
}

static void choose_node(const struct affinity_machine *machine, uint32_t node,
                        uint8_t *mask)
{
    size_t i;

    for (i = 0; i < machine->n_cpus; i++) {
        if (machine->cpus[i].node == node) {
            mask_add(mask, machine->cpus[i].cpu);
        }
    }
}

static void choose_socket(const struct affinity_machine *machine, uint32_t node,
                          uint8_t *mask)
{
    size_t i;
    size_t k;

    for (i = 0; i < machine->n_cpus; i++) {
        for (k = 0; k < machine->n_cpus; k++) {
            if (machine->cpus[k].node == node &&
                machine->cpus[k].socket == machine->cpus[i].socket) {
                mask_add(mask, machine->cpus[i].cpu);
            }
        }
    }
}

/* Cores in order; those that come first get one more where they do not divide.
 * Nothing where there are too few. */
static void choose_exclusive(const struct affinity_machine *machine,
                             const struct seat *seat, struct part *parts,
                             uint8_t *mask)
{
    size_t n = parts_of(machine, seat->node, core_of, parts);
    size_t each;
    size_t more;
    size_t first;

    assert(seat->n_turns > 0); /* its own at least */
    each = n / seat->n_turns;
    more = n % seat->n_turns;
    first = seat->turn * each + (seat->turn < more ? seat->turn : more);
    if (each > 0) {
        add_parts(machine, seat->node, core_of, parts + first,
                  each + (seat->turn < more), mask);
    }
}

static void choose_complex(const struct affinity_machine *machine,
                           const struct seat *seat, struct part *parts,
                           uint8_t *mask)
{
    size_t n = parts_of(machine, seat->node, cache_of, parts);

    qsort(parts, n, sizeof(*parts), by_size);
    if (n > 0) {
        add_parts(machine, seat->node, cache_of, parts + seat->turn % n, 1,
                  mask);
    }
}

static void choose(enum affinity_mode mode,
                   const struct affinity_machine *machine,
                   const struct seat *seat, struct part *parts, uint8_t *mask)
{
    switch (mode) {
    case AFFINITY_NODE:
        choose_node(machine, seat->node, mask);
        break;
    case AFFINITY_SOCKET:
        choose_socket(machine, seat->node, mask);
        break;
    case AFFINITY_EXCLUSIVE:
        choose_exclusive(machine, seat, parts, mask);
        break;
    case AFFINITY_CORE_COMPLEX:
        choose_complex(machine, seat, parts, mask);
        break;
    }
}

/* The seat of GPU number gpu among all of the machine's, used or not. */
static struct seat gpu_seat(const struct affinity_machine *machine,
                            uint32_t gpu)
{
    struct seat seat = { .node = machine->gpu_nodes[gpu] };
    size_t i;

    for (i = 0; i < machine->n_gpus; i++) {
        if (machine->gpu_nodes[i] == seat.node) {
            seat.turn += i < gpu;
            seat.n_turns++;
        }
    }
    return seat;
}

/* Without GPUs: nodes in order, each with as many workers as the next. */
static struct seat spread_seat(const struct part *nodes, size_t n_nodes,
                               uint32_t worker, uint32_t n_workers)
{
    size_t mine = (size_t)worker * n_nodes / n_workers;
    struct seat seat = { .node = nodes[mine].name };
    uint32_t i;

    for (i = 0; i < n_workers; i++) {
        if ((size_t)i * n_nodes / n_workers == mine) {
            seat.turn += i < worker;
            seat.n_turns++;
        }
    }
    return seat;
}

/* All nodes by number, as parts. */
static size_t nodes_of(const struct affinity_machine *machine,
                       struct part *nodes)
{
    size_t n = 0;
    size_t i;
    size_t k;

    for (i = 0; i < machine->n_cpus; i++) {
        for (k = 0; k < n && nodes[k].name != machine->cpus[i].node; k++) {
        }
        if (k == n) {
            nodes[n++] = (struct part){ .name = machine->cpus[i].node };
        }
    }
    qsort(nodes, n, sizeof(*nodes), by_name);
    return n;
}

static bool is_empty(const uint8_t *mask, uint32_t bytes)
{
    uint32_t i;

    for (i = 0; i < bytes; i++) {
        if (mask[i] != 0) {
            return false;
        }
    }
    return true;
}

static int no_cpu(uint32_t worker, const struct seat *seat, struct err *err)
{
    return err_set(err, -EINVAL,
                   "--numa-binding: no CPU is left for local rank %u: %u share "
                   "NUMA node %u",
                   worker, seat->n_turns, seat->node);
}

int affinity_choose(enum affinity_mode mode,
                    const struct affinity_machine *machine,
                    const uint32_t *worker_gpus, uint32_t n_workers,
                    struct cpu_masks *masks_out, struct err *err)
{
    struct part *parts = calloc(machine->n_cpus, sizeof(*parts));
    struct part *nodes = calloc(machine->n_cpus, sizeof(*nodes));
    struct cpu_masks masks = { 0 };
    size_t n_nodes;
    uint32_t i;
    int rc = 0;

    /* A whole number of the kernel's words. */
    masks.bytes = (machine->cpus[machine->n_cpus - 1].cpu / 64 + 1) * 8;
    masks.masks = calloc(n_workers, masks.bytes);
    if (parts == NULL || nodes == NULL || masks.masks == NULL) {
        rc = err_sys(err, -ENOMEM, "--numa-binding");
        goto out;
    }
    n_nodes = nodes_of(machine, nodes);
    for (i = 0; i < n_workers && rc == 0; i++) {
        uint8_t *mask = masks.masks + (size_t)i * masks.bytes;
        struct seat seat = worker_gpus != NULL
                               ? gpu_seat(machine, worker_gpus[i])
                               : spread_seat(nodes, n_nodes, i, n_workers);

        choose(mode, machine, &seat, parts, mask);
        if (is_empty(mask, masks.bytes)) {
            rc = no_cpu(i, &seat, err);
        }
    }
out:
    free(parts);
    free(nodes);
    if (rc < 0) {
        cpu_masks_destroy(&masks);
        return rc;
    }
    *masks_out = masks;
    return 0;
}

void cpu_masks_print(const struct cpu_masks *masks, uint32_t worker,
                     char *text_out, size_t size)
{
    const uint8_t *mask = masks->masks + (size_t)worker * masks->bytes;
    uint32_t n = masks->bytes * 8;
    size_t len = 0;
    uint32_t cpu = 0;

    text_out[0] = '\0';
    while (cpu < n && len + 24 < size) {
        uint32_t first = cpu;

        while (cpu < n && (mask[cpu / 8] >> (cpu % 8) & 1) != 0) {
            cpu++;
        }
        if (cpu > first) {
            len += (size_t)snprintf(text_out + len, size - len,
                                    cpu - first > 1 ? "%s%u-%u" : "%s%u",
                                    len > 0 ? "," : "", first, cpu - 1);
        }
        cpu++;
    }
}

void cpu_masks_destroy(struct cpu_masks *masks)
{
    free(masks->masks);
    *masks = (struct cpu_masks){ 0 };
}
