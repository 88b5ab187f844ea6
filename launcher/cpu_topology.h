/*
 * Which CPUs this machine lets us use, and what they share: from hwloc.
 */
#ifndef FLAUNCH_LAUNCHER_CPU_TOPOLOGY_H
#define FLAUNCH_LAUNCHER_CPU_TOPOLOGY_H

#include "launcher/affinity.h"

/*
 * cpus_out gets the CPUs of our affinity mask by number, to be freed. Returns
 * 0, -ENOENT without hwloc, or another negative errno, with a sentence.
 */
int cpu_topology_read(struct affinity_cpu **cpus_out, size_t *n_cpus_out,
                      struct err *err);

#endif
