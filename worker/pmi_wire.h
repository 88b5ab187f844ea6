/*
 * PMI-1's lines; pure. Each is "cmd=NAME key=value ...", keys in any order.
 * Source: what hydra 4 and Slurm 22 answer; Flux RFC 13.
 */
#ifndef FLAUNCH_WORKER_PMI_WIRE_H
#define FLAUNCH_WORKER_PMI_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#define PMI_LINE_MAX 2048

/*
 * The value of a key in a line, up to the next blank. Returns whether it is
 * there and fits into size.
 */
bool pmi_field(const char *line, const char *key, char *value_out, size_t size);

/* The same as a number of 0..INT_MAX. */
bool pmi_number(const char *line, const char *key, int *value_out);

/*
 * Whether a line is the answer cmd and, where it has rc, that is 0: 0,
 * -EPROTO for another line, -ENOENT for another rc.
 */
int pmi_answer(const char *line, const char *cmd);

/*
 * "(vector,(first node, nodes, ranks per node),...)": where rank stands among
 * the ranks of its node, and how many those are. Returns 0, -EPROTO, or -ENOENT
 * where the text does not reach that rank.
 */
int pmi_mapping_read(const char *text, int rank, int *local_rank_out,
                     int *local_world_size_out);

#endif
