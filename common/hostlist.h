/*
 * Slurm's compact lists: node names and counts.
 *
 * Names: entries separated by commas outside of brackets; an entry is text with
 * any number of groups "[3,5-7,010-012]", several of which multiply, the last
 * one fastest. The width of a range's low end gives the padding. Counts:
 * "2(x3),1". Source: scontrol(1) show hostnames, of Slurm 22.05.
 */
#ifndef FLAUNCH_COMMON_HOSTLIST_H
#define FLAUNCH_COMMON_HOSTLIST_H

#include <stddef.h>
#include <stdint.h>

#define HOSTLIST_NAME_MAX 256
#define HOSTLIST_NODES_MAX 65536

/* Called with each name in order; a value other than 0 ends the walk. */
typedef int hostlist_fn(const char *name, void *arg);

/*
 * Call each for every name. Returns 0, what each returned, -EINVAL where the
 * list is malformed (each may have been called already), -E2BIG with more than
 * HOSTLIST_NODES_MAX names or one longer than HOSTLIST_NAME_MAX - 1.
 */
int hostlist_walk(const char *text, hostlist_fn *each, void *arg);

/* The first name: 0, -EINVAL or -E2BIG. */
int hostlist_first(const char *text, char name_out[HOSTLIST_NAME_MAX]);

/*
 * The count of node index, from 0, in "2(x3),1". Returns 0, -EINVAL, or
 * -ERANGE where there are fewer nodes.
 */
int hostlist_count_at(const char *text, int64_t index, int64_t *count_out);

#endif
