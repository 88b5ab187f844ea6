#include "launcher/binding.h"

#include "launcher/cpu_topology.h"
#include "launcher/gpu_place.h"

#include <errno.h>
#include <stdlib.h>

int binding_make(enum affinity_mode mode, const char *visible,
                 uint32_t n_workers, struct cpu_masks *masks_out,
                 struct err *err)
{
    struct gpu_places places = { 0 };
    struct affinity_cpu *cpus = NULL;
    struct affinity_machine machine = { .gpu_nodes = places.nodes };
    int rc = gpu_places_read("", visible, &places, err);

    if (rc < 0) {
        return rc;
    }
    if (places.n_visible > 0 && n_workers > places.n_visible) {
        return err_set(err, -EINVAL,
                       "--numa-binding: %u workers and %u visible GPUs: each "
                       "worker needs one to be bound to",
                       n_workers, places.n_visible);
    }
    rc = cpu_topology_read(&cpus, &machine.n_cpus, err);
    if (rc < 0) {
        return rc;
    }
    machine.cpus = cpus;
    machine.n_gpus = places.n;
    rc = affinity_choose(mode, &machine,
                         places.n_visible > 0 ? places.visible : NULL,
                         n_workers, masks_out, err);
    free(cpus);
    return rc;
}
