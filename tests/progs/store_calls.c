/*
 * Calls of a store, one a line of stdin, an answer a line of stdout.
 *
 *   store_calls HOST PORT RELEASE MS
 *
 * A line is the call's name and its arguments, by blanks; "-" is an empty
 * value. What it prints: the answer; a value as it is; "error -N sentence". MS
 * is the time limit of each call.
 */
#include "worker/flaunch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 32

static struct flaunch_store *store;
static struct flaunch_error error;
static uint64_t limit_ms;

struct line {
    char *words[WORDS_MAX];
    size_t n;
};

static const char *word(const struct line *line, size_t i)
{
    if (i >= line->n) {
        (void)fprintf(stderr, "store_calls: %s needs more\n", line->words[0]);
        exit(2);
    }
    return strcmp(line->words[i], "-") == 0 ? "" : line->words[i];
}

static int put(int rc, const char *answer)
{
    if (rc < 0) {
        (void)printf("error %d %s\n", rc, error.text);
    } else {
        (void)printf("%s\n", answer);
    }
    return rc;
}

static void put_value(int rc, void *value, size_t len)
{
    if (rc < 0) {
        (void)put(rc, "");
        return;
    }
    (void)fwrite(value, 1, len, stdout);
    (void)putchar('\n');
    free(value);
}

static void put_number(int rc, int64_t number)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%" PRId64, number);
    (void)put(rc, text);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_keys(uint64_t deadline)
{
    char **keys;
    size_t n;
    size_t i;
    int rc = flaunch_store_list_keys(store, &keys, &n, deadline, &error);

    if (rc < 0) {
        (void)put(rc, "");
        return;
    }
    qsort(keys, n, sizeof(*keys), compare);
    for (i = 0; i < n; i++) {
        (void)printf("%s%s", i > 0 ? " " : "", keys[i]);
    }
    (void)putchar('\n');
    free(keys);
}

static void multi_get(const struct line *line, uint64_t deadline)
{
    struct flaunch_bytes values[WORDS_MAX];
    size_t n = line->n - 1;
    size_t i;
    int rc =
        flaunch_store_multi_get(store, (const char *const *)line->words + 1, n,
                                values, deadline, &error);

    if (rc < 0) {
        (void)put(rc, "");
        return;
    }
    for (i = 0; i < n; i++) {
        (void)printf("%s%s", i > 0 ? " " : "", (const char *)values[i].data);
        free(values[i].data);
    }
    (void)putchar('\n');
}

static void multi_set(const struct line *line, uint64_t deadline)
{
    struct flaunch_bytes values[WORDS_MAX];
    const char *keys[WORDS_MAX];
    size_t n = (line->n - 1) / 2;
    size_t i;

    for (i = 0; i < n; i++) {
        keys[i] = word(line, 1 + 2 * i);
        values[i].data = (void *)(uintptr_t)word(line, 2 + 2 * i);
        values[i].len = strlen(values[i].data);
    }
    (void)put(flaunch_store_multi_set(store, keys, values, n, deadline, &error),
              "ok");
}

static void run(const struct line *line)
{
    const char *const *words = (const char *const *)line->words;
    uint64_t deadline = flaunch_deadline(limit_ms);
    const char *call = line->words[0];
    int64_t number = 0;
    void *value = NULL;
    size_t len = 0;
    int yes = 0;
    int rc;

    if (strcmp(call, "set") == 0) {
        (void)put(flaunch_store_set(store, word(line, 1), word(line, 2),
                                    strlen(word(line, 2)), deadline, &error),
                  "ok");
    } else if (strcmp(call, "append") == 0) {
        (void)put(flaunch_store_append(store, word(line, 1), word(line, 2),
                                       strlen(word(line, 2)), deadline, &error),
                  "ok");
    } else if (strcmp(call, "get") == 0) {
        rc = flaunch_store_get(store, word(line, 1), &value, &len, deadline,
                               &error);
        put_value(rc, value, len);
    } else if (strcmp(call, "add") == 0) {
        rc = flaunch_store_add(store, word(line, 1), atoll(word(line, 2)),
                               &number, deadline, &error);
        put_number(rc, number);
    } else if (strcmp(call, "compare_set") == 0) {
        rc = flaunch_store_compare_set(store, word(line, 1), word(line, 2),
                                       strlen(word(line, 2)), word(line, 3),
                                       strlen(word(line, 3)), &value, &len,
                                       deadline, &error);
        put_value(rc, value, len);
    } else if (strcmp(call, "wait") == 0) {
        (void)put(
            flaunch_store_wait(store, words + 1, line->n - 1, deadline, &error),
            "ok");
    } else if (strcmp(call, "check") == 0) {
        rc = flaunch_store_check(store, words + 1, line->n - 1, &yes, deadline,
                                 &error);
        put_number(rc, yes);
    } else if (strcmp(call, "delete") == 0) {
        rc = flaunch_store_delete(store, word(line, 1), &yes, deadline, &error);
        put_number(rc, yes);
    } else if (strcmp(call, "ping") == 0) {
        (void)put(flaunch_store_ping(store, deadline, &error), "ok");
    } else if (strcmp(call, "num_keys") == 0) {
        rc = flaunch_store_num_keys(store, &number, deadline, &error);
        put_number(rc, number);
    } else if (strcmp(call, "list_keys") == 0) {
        list_keys(deadline);
    } else if (strcmp(call, "multi_set") == 0) {
        multi_set(line, deadline);
    } else if (strcmp(call, "multi_get") == 0) {
        multi_get(line, deadline);
    } else if (strcmp(call, "push") == 0) {
        (void)put(flaunch_store_queue_push(store, word(line, 1), word(line, 2),
                                           strlen(word(line, 2)), deadline,
                                           &error),
                  "ok");
    } else if (strcmp(call, "pop") == 0 || strcmp(call, "pop_now") == 0) {
        rc = flaunch_store_queue_pop(store, word(line, 1),
                                     strcmp(call, "pop") == 0, &value, &len,
                                     deadline, &error);
        put_value(rc, value, len);
    } else if (strcmp(call, "queue_len") == 0) {
        rc = flaunch_store_queue_len(store, word(line, 1), &number, deadline,
                                     &error);
        put_number(rc, number);
    } else if (strcmp(call, "barrier") == 0) {
        (void)put(flaunch_store_barrier(store, word(line, 1),
                                        atoll(word(line, 2)), deadline, &error),
                  "ok");
    } else {
        (void)fprintf(stderr, "store_calls: no call %s\n", call);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static char text[65536];

    if (argc != 5) {
        return 2;
    }
    limit_ms = strtoull(argv[4], NULL, 10);
    if (flaunch_store_connect(&store, argv[1], atoi(argv[2]), argv[3],
                              flaunch_deadline(limit_ms), &error) < 0) {
        (void)printf("error %d %s\n", error.code, error.text);
        return 1;
    }
    while (fgets(text, sizeof(text), stdin) != NULL) {
        struct line line = { .n = 0 };
        char *rest = NULL;
        char *at = strtok_r(text, " \n", &rest);

        for (; at != NULL && line.n < WORDS_MAX;
             at = strtok_r(NULL, " \n", &rest)) {
            line.words[line.n++] = at;
        }
        if (line.n > 0) {
            run(&line);
            (void)fflush(stdout);
        }
    }
    flaunch_store_close(store);
    return 0;
}
