#include "worker/pmi_wire.h"

#include "common/parse.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define NODES_MAX 65536
#define RANKS_MAX 10000000

bool pmi_field(const char *line, const char *key, char *value_out, size_t size)
{
    size_t key_len = strlen(key);

    while (*line != '\0') {
        size_t len;

        line += strspn(line, " \n");
        len = strcspn(line, " \n");
        if (len > key_len && strncmp(line, key, key_len) == 0 &&
            line[key_len] == '=') {
            size_t value_len = len - key_len - 1;

            if (value_len >= size) {
                return false;
            }
            memcpy(value_out, line + key_len + 1, value_len);
            value_out[value_len] = '\0';
            return true;
        }
        line += len;
    }
    return false;
}

bool pmi_number(const char *line, const char *key, int *value_out)
{
    char text[24];
    int64_t value;

    if (!pmi_field(line, key, text, sizeof(text)) ||
        parse_int(text, 0, INT_MAX, &value) < 0) {
        return false;
    }
    *value_out = (int)value;
    return true;
}

int pmi_answer(const char *line, const char *cmd)
{
    char text[64];

    if (!pmi_field(line, "cmd", text, sizeof(text)) || strcmp(text, cmd) != 0) {
        return -EPROTO;
    }
    return !pmi_field(line, "rc", text, sizeof(text)) || strcmp(text, "0") == 0
               ? 0
               : -ENOENT;
}

struct block {
    int first_node;
    int n_nodes;
    int per_node;
};

/* The next block of the vector: whether there is one. */
static bool next_block(const char **at, struct block *block)
{
    int used = 0;

    if (sscanf(*at, ",(%9d,%9d,%9d)%n", &block->first_node, &block->n_nodes,
               &block->per_node, &used) != 3 ||
        used == 0) {
        return false;
    }
    *at += used;
    return block->first_node >= 0 && block->first_node < NODES_MAX &&
           block->n_nodes > 0 && block->n_nodes < NODES_MAX &&
           block->per_node > 0 && block->per_node < RANKS_MAX;
}

/*
 * Walk over all blocks. With node < 0, find the node of rank; else count that
 * node's ranks, and those below rank.
 */
static int walk(const char *at, int rank, int node, int *below_out,
                int *count_out)
{
    struct block block;
    int64_t first = 0; /* rank of the block's first */

    *below_out = 0;
    *count_out = 0;
    while (next_block(&at, &block)) {
        int64_t n = (int64_t)block.n_nodes * block.per_node;
        int64_t begins;

        if (first + n > RANKS_MAX) {
            return -EPROTO;
        }
        if (node < 0 && rank < first + n) {
            return block.first_node + (int)((rank - first) / block.per_node);
        }
        if (node >= block.first_node &&
            node < block.first_node + block.n_nodes) {
            begins =
                first + (int64_t)(node - block.first_node) * block.per_node;
            *count_out += block.per_node;
            if (rank >= begins + block.per_node) {
                *below_out += block.per_node;
            } else if (rank > begins) {
                *below_out += (int)(rank - begins);
            }
        }
        first += n;
    }
    return node < 0 ? -ENOENT : 0;
}

int pmi_mapping_read(const char *text, int rank, int *local_rank_out,
                     int *local_world_size_out)
{
    static const char begin[] = "(vector";
    int below;
    int count;
    int node;
    int rc;

    if (rank < 0 || strncmp(text, begin, strlen(begin)) != 0) {
        return -EPROTO;
    }
    text += strlen(begin);
    node = walk(text, rank, -1, &below, &count);
    if (node < 0) {
        return node;
    }
    rc = walk(text, rank, node, &below, &count);
    if (rc == 0) {
        *local_rank_out = below;
        *local_world_size_out = count;
    }
    return rc;
}
