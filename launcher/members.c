#include "launcher/members.h"

#include "launcher/agent_proto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_FIRST 8
/* Of each list in the roll call. */
#define LIST_BYTES 300

int members_init(struct members *members, uint32_t max_nodes)
{
    uint32_t i;

    *members =
        (struct members){ .free_head = MEMBER_NONE, .max_nodes = max_nodes };
    members->owners = calloc(max_nodes, sizeof(*members->owners));
    if (members->owners == NULL) {
        return -ENOMEM;
    }
    for (i = 0; i < max_nodes; i++) {
        members->owners[i] = MEMBER_NONE;
    }
    return 0;
}

static void row_clear(struct member *row)
{
    free(row->host);
    free(row->run_id);
    free(row->role);
    free(row->note);
    *row = (struct member){ 0 };
}

void members_destroy(struct members *members)
{
    uint32_t i;

    for (i = 0; i < members->n; i++) {
        row_clear(&members->rows[i]);
    }
    free(members->rows);
    free(members->owners);
    *members = (struct members){ 0 };
}

static int rows_grow(struct members *members)
{
    uint32_t cap = members->cap == 0 ? ROWS_FIRST : members->cap * 2;
    struct member *rows = realloc(members->rows, cap * sizeof(*rows));

    if (rows == NULL) {
        return -ENOMEM;
    }
    members->rows = rows;
    members->cap = cap;
    return 0;
}

int64_t members_add(struct members *members, uint64_t now_ms)
{
    uint32_t id = members->free_head;

    if (id != MEMBER_NONE) {
        members->free_head = members->rows[id].next_pending;
    } else {
        if (members->n == members->cap && rows_grow(members) < 0) {
            return -ENOMEM;
        }
        id = members->n++;
    }
    members->rows[id] = (struct member){ .state = MEMBER_NEW,
                                         .asked_rank = AGENT_NO_RANK,
                                         .group_rank = AGENT_NO_RANK,
                                         .arrival = members->arrivals++,
                                         .since_ms = now_ms,
                                         .heard_ms = now_ms,
                                         .next_pending = MEMBER_NONE };
    members->n_new++;
    members->n_used++;
    return id;
}

static bool is_in(enum member_state state)
{
    return state == MEMBER_HERE || state == MEMBER_RUNNING ||
           state == MEMBER_ENDED;
}

/* Count a row in the numbers of its state, by 1 or -1. */
static void count(struct members *members, enum member_state state, int by)
{
    uint32_t change = (uint32_t)by;

    members->n_in += is_in(state) ? change : 0;
    members->n_here +=
        state == MEMBER_HERE || state == MEMBER_ENDED ? change : 0;
    members->n_running += state == MEMBER_RUNNING ? change : 0;
    members->n_new += state == MEMBER_NEW || state == MEMBER_HELD ? change : 0;
    members->n_over += state == MEMBER_OVER ? change : 0;
}

void members_set(struct members *members, uint32_t id, enum member_state state)
{
    struct member *row = &members->rows[id];
    bool ranked = row->asked_rank < members->max_nodes;

    count(members, row->state, -1);
    count(members, state, 1);
    if (ranked && !is_in(row->state) && is_in(state)) {
        members->owners[row->asked_rank] = id;
    } else if (ranked && is_in(row->state) && !is_in(state)) {
        members->owners[row->asked_rank] = MEMBER_NONE;
    }
    row->state = state;
}

void members_drop(struct members *members, uint32_t id)
{
    members_set(members, id, MEMBER_FREE);
    row_clear(&members->rows[id]);
    members->rows[id].next_pending = members->free_head;
    members->free_head = id;
    members->n_used--;
}

uint32_t members_owner(const struct members *members, uint32_t rank)
{
    return rank < members->max_nodes ? members->owners[rank] : MEMBER_NONE;
}

/* --- order ---------------------------------------------------------------- */

static const struct member *row_of(const void *pointer)
{
    const struct member *const *row = pointer;

    return *row;
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Who gets a place. */
static int compare_claim(const void *a, const void *b)
{
    const struct member *left = row_of(a);
    const struct member *right = row_of(b);

    if (left->was_in != right->was_in) {
        return left->was_in ? -1 : 1;
    }
    return compare_u64(left->arrival, right->arrival);
}

/* Which place: ranks asked for, then natural order of names. */
static int compare_rank(const void *a, const void *b)
{
    const struct member *left = row_of(a);
    const struct member *right = row_of(b);
    int rc = compare_u64(left->asked_rank, right->asked_rank);

    if (rc == 0) {
        rc = strverscmp(left->host, right->host);
    }
    return rc != 0 ? rc : compare_u64(left->arrival, right->arrival);
}

static int compare_role(const void *a, const void *b)
{
    const struct member *left = row_of(a);
    const struct member *right = row_of(b);
    int rc = strcmp(left->role, right->role);

    return rc != 0 ? rc : compare_u64(left->group_rank, right->group_rank);
}

static int compare_group(const void *a, const void *b)
{
    return compare_u64(row_of(a)->group_rank, row_of(b)->group_rank);
}

/* All that are HERE, the host node's first: how many. */
static uint32_t collect(struct members *members, struct member **list)
{
    uint32_t n = 0;
    uint32_t i;

    for (i = 0; i < members->n; i++) {
        if (members->rows[i].state == MEMBER_HERE) {
            list[n++] = &members->rows[i];
        }
    }
    return n;
}

/*
 * Group ranks for the list, whose first is the host node: 0. With a fixed
 * number of nodes a rank that was asked for is had, and the others fill the
 * gaps; else all close up.
 */
static void number_groups(struct member **list, uint32_t n, bool fixed)
{
    uint32_t next = 1;
    uint32_t ranked = 1; /* the next in the list that asked for one */
    uint32_t last;
    uint32_t i;

    qsort(list + 1, n - 1, sizeof(struct member *), compare_rank);
    for (last = 1; last < n && list[last]->asked_rank != AGENT_NO_RANK;) {
        last++;
    }
    list[0]->group_rank = 0;
    if (!fixed) {
        for (i = 1; i < n; i++) {
            list[i]->group_rank = i;
        }
        return;
    }
    for (i = 1; i < last; i++) {
        list[i]->group_rank = list[i]->asked_rank;
    }
    for (i = last; i < n; i++) {
        while (ranked < last && list[ranked]->asked_rank == next) {
            ranked++;
            next++;
        }
        list[i]->group_rank = next++;
    }
}

static uint32_t number_workers(struct member **list, uint32_t n)
{
    uint32_t base = 0;
    uint32_t i;

    qsort(list, n, sizeof(struct member *), compare_group);
    for (i = 0; i < n; i++) {
        list[i]->base_rank = base;
        base += list[i]->n_workers;
    }
    return base;
}

static void number_roles(struct member **list, uint32_t n)
{
    uint32_t first = 0;
    uint32_t i;

    qsort(list, n, sizeof(struct member *), compare_role);
    while (first < n) {
        uint32_t base = 0;
        uint32_t end = first;

        while (end < n && strcmp(list[end]->role, list[first]->role) == 0) {
            list[end]->role_base_rank = base;
            base += list[end]->n_workers;
            end++;
        }
        for (i = first; i < end; i++) {
            list[i]->role_world_size = base;
        }
        first = end;
    }
}

int members_seal(struct members *members, bool fixed, uint32_t *n_out,
                 uint32_t *size_out)
{
    struct member **list = calloc(members->n, sizeof(struct member *));
    uint32_t n;
    uint32_t i;

    if (list == NULL) {
        return -ENOMEM;
    }
    n = collect(members, list);
    if (n > members->max_nodes) {
        qsort(list + 1, n - 1, sizeof(struct member *), compare_claim);
        n = members->max_nodes;
    }
    number_groups(list, n, fixed);
    *size_out = number_workers(list, n);
    number_roles(list, n);
    for (i = 0; i < members->n; i++) {
        members->rows[i].was_in = false;
    }
    for (i = 0; i < n; i++) {
        list[i]->was_in = true;
        members_set(members, (uint32_t)(list[i] - members->rows),
                    MEMBER_RUNNING);
    }
    *n_out = n;
    free(list);
    return 0;
}

/* --- words ---------------------------------------------------------------- */

void member_name(const struct member *member, char *text_out, size_t size)
{
    const char *host = member->host != NULL ? member->host : "?";
    uint32_t rank = member->group_rank != AGENT_NO_RANK ? member->group_rank
                                                        : member->asked_rank;

    if (rank == AGENT_NO_RANK) {
        (void)snprintf(text_out, size, "%s", host);
    } else {
        (void)snprintf(text_out, size, "node %u (%s)", rank, host);
    }
}

/* A text that grows to its size and then ends with "...". */
struct list_text {
    char *text;
    size_t size;
    size_t len;
    bool full;
};

static void list_add(struct list_text *list, const char *item)
{
    size_t need = strlen(item) + 2;

    if (list->full) {
        return;
    }
    if (list->len + need + 6 > list->size) {
        list->full = true;
        item = "...";
    }
    list->len +=
        (size_t)snprintf(list->text + list->len, list->size - list->len, "%s%s",
                         list->len > 0 ? ", " : "", item);
}

static void list_here(const struct members *members, struct list_text *list)
{
    uint32_t i;

    for (i = 0; i < members->n && !list->full; i++) {
        const struct member *row = &members->rows[i];
        char item[AGENT_HOST_MAX + 16];

        if (!is_in(row->state)) {
            continue;
        }
        if (i == MEMBER_LOCAL) {
            (void)snprintf(item, sizeof(item), "0: %s", row->host);
        } else if (row->asked_rank != AGENT_NO_RANK) {
            (void)snprintf(item, sizeof(item), "%u: %s", row->asked_rank,
                           row->host);
        } else {
            (void)snprintf(item, sizeof(item), "%s", row->host);
        }
        list_add(list, item);
    }
}

/* Whether every node that is here has a number of its own; the host node's is
 * 0 anyway. */
static bool all_ranked(const struct members *members)
{
    uint32_t i;

    for (i = MEMBER_LOCAL + 1; i < members->n; i++) {
        if (is_in(members->rows[i].state) &&
            members->rows[i].asked_rank == AGENT_NO_RANK) {
            return false;
        }
    }
    return members->n_in > 1 ||
           members->rows[MEMBER_LOCAL].asked_rank != AGENT_NO_RANK;
}

static void list_missing(const struct members *members, struct list_text *list)
{
    uint32_t i = 1;

    while (i < members->max_nodes && !list->full) {
        uint32_t first = i;
        char item[32];

        while (i < members->max_nodes && members->owners[i] == MEMBER_NONE) {
            i++;
        }
        if (i - first > 1) {
            (void)snprintf(item, sizeof(item), "%u-%u", first, i - 1);
        } else {
            (void)snprintf(item, sizeof(item), "%u", first);
        }
        if (i > first) {
            list_add(list, item);
        }
        i++;
    }
}

void members_roll_call(const struct members *members, uint32_t min_nodes,
                       char *text_out, size_t size)
{
    char here[LIST_BYTES];
    char missing[LIST_BYTES];
    struct list_text here_list = { .text = here, .size = sizeof(here) };
    struct list_text missing_list = { .text = missing,
                                      .size = sizeof(missing) };
    uint32_t short_of =
        members->n_in < min_nodes ? min_nodes - members->n_in : 0;
    char of[48];

    (void)snprintf(of, sizeof(of),
                   min_nodes < members->max_nodes ? "%u to %u" : "%u",
                   min_nodes, members->max_nodes);
    here[0] = '\0';
    list_here(members, &here_list);
    missing[0] = '\0';
    if (min_nodes == members->max_nodes &&
        (all_ranked(members) || members->max_nodes == 2)) {
        list_missing(members, &missing_list);
    } else {
        (void)snprintf(missing, sizeof(missing), "%u more", short_of);
    }
    (void)snprintf(text_out, size, "%u of %s nodes here (%s)%s%s",
                   members->n_in, of, here, short_of > 0 ? "; missing: " : "",
                   short_of > 0 ? missing : "");
}
