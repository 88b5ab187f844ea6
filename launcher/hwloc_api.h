/*
 * hwloc, loaded when a binding is asked for: what we use of it, declared here
 * so that flaunch is built without its headers. hwloc_check.c has the compiler
 * compare where they are installed. Of hwloc 2.x, whose layout is fixed.
 */
#ifndef FLAUNCH_LAUNCHER_HWLOC_API_H
#define FLAUNCH_LAUNCHER_HWLOC_API_H

#include "common/err.h"

#include <stdint.h>

#define HWLOC_API_PACKAGE 1
#define HWLOC_API_CORE 2
#define HWLOC_API_PU 3
#define HWLOC_API_L1CACHE 4
#define HWLOC_API_L5CACHE 8
#define HWLOC_API_DEPTH_NUMANODE (-3)

struct hwloc_topology;
struct hwloc_bitmap_s;

struct hwloc_api_obj {
    int type;
    char *subtype;
    unsigned os_index;
    char *name;
    uint64_t total_memory;
    void *attr;
    int depth;
    unsigned logical_index;
    struct hwloc_api_obj *next_cousin;
    struct hwloc_api_obj *prev_cousin;
    struct hwloc_api_obj *parent;
    unsigned sibling_rank;
    struct hwloc_api_obj *next_sibling;
    struct hwloc_api_obj *prev_sibling;
    unsigned arity;
    struct hwloc_api_obj **children;
    struct hwloc_api_obj *first_child;
    struct hwloc_api_obj *last_child;
    int symmetric_subtree;
    unsigned memory_arity;
    struct hwloc_api_obj *memory_first_child;
    unsigned io_arity;
    struct hwloc_api_obj *io_first_child;
    unsigned misc_arity;
    struct hwloc_api_obj *misc_first_child;
    struct hwloc_bitmap_s *cpuset;
    /* More follows that we do not read. */
};

struct hwloc_api {
    int (*topology_init)(struct hwloc_topology **topology);
    int (*topology_load)(struct hwloc_topology *topology);
    void (*topology_destroy)(struct hwloc_topology *topology);
    int (*get_type_depth)(struct hwloc_topology *topology, int type);
    unsigned (*get_nbobjs_by_depth)(struct hwloc_topology *topology, int depth);
    struct hwloc_api_obj *(*get_obj_by_depth)(struct hwloc_topology *topology,
                                              int depth, unsigned index);
    int (*bitmap_first)(const struct hwloc_bitmap_s *bitmap);
    int (*bitmap_isset)(const struct hwloc_bitmap_s *bitmap, unsigned index);
};

/* Load it: 0, or -ENOENT with a sentence. */
int hwloc_api_load(struct hwloc_api *api_out, struct err *err);

#endif
