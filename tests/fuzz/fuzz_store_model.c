/*
 * The store against a model that is simple enough to be seen to be right: a few
 * keys, arrays for everything. Each byte of the input is part of a call.
 */
#include "common/store.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define N_KEYS 4
#define N_WAITERS 3
#define LINKS_MAX 4096
#define QUEUE_MAX 4096
#define VALUE_MAX 4096

struct model_key {
    bool exists;
    uint8_t value[VALUE_MAX];
    size_t len;
    uint8_t queue[QUEUE_MAX];
    size_t n_queue;
};

/* Who waits for what, in order of arrival. */
struct model_link {
    int waiter;
    int key;
};

struct model {
    struct model_key keys[N_KEYS];
    struct model_link links[LINKS_MAX];
    size_t n_links;
    unsigned n_done[N_WAITERS];
};

struct waiter {
    struct store_waiter waiter;
    unsigned n_done;
};

static void done(struct store_waiter *waiter)
{
    ((struct waiter *)waiter->arg)->n_done++;
}

static const char *const names[N_KEYS] = { "", "a", "b", "longer key" };

static struct bytes key_of(int key)
{
    return (struct bytes){ .data = (const uint8_t *)names[key],
                           .len = strlen(names[key]) };
}

/* --- the model ---------------------------------------------------------------
 */

static size_t model_missing(const struct model *model, int waiter)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < model->n_links; i++) {
        n += model->links[i].waiter == waiter;
    }
    return n;
}

/* Release those who wait for key, or the first of them. */
static void model_wake(struct model *model, int key, bool all)
{
    size_t i = 0;

    while (i < model->n_links) {
        int waiter = model->links[i].waiter;

        if (model->links[i].key != key) {
            i++;
            continue;
        }
        memmove(&model->links[i], &model->links[i + 1],
                (model->n_links - i - 1) * sizeof(model->links[0]));
        model->n_links--;
        model->n_done[waiter] += model_missing(model, waiter) == 0;
        if (!all) {
            return;
        }
    }
}

static void model_cancel(struct model *model, int waiter)
{
    size_t kept = 0;
    size_t i;

    for (i = 0; i < model->n_links; i++) {
        if (model->links[i].waiter != waiter) {
            model->links[kept++] = model->links[i];
        }
    }
    model->n_links = kept;
}

static void model_write(struct model *model, int key, size_t at,
                        const uint8_t *value, size_t len)
{
    memcpy(model->keys[key].value + at, value, len);
    model->keys[key].len = at + len;
    model->keys[key].exists = true;
}

static bool model_ready(const struct model *model, int key)
{
    return model->keys[key].exists || model->keys[key].n_queue > 0;
}

/* As strtoll, over what has no NUL: -EINVAL, -ERANGE, or 0. */
static int model_number(const struct model_key *key, int64_t *number)
{
    char text[VALUE_MAX + 1];
    char *end;

    if (!key->exists) {
        *number = 0;
        return 0;
    }
    memcpy(text, key->value, key->len);
    text[key->len] = '\0';
    errno = 0;
    *number = strtoll(text, &end, 10);
    return errno == ERANGE ? -ERANGE : end == text ? -EINVAL : 0;
}

static int model_add(struct model *model, int key, int64_t delta, int64_t *sum)
{
    char text[32];
    int rc = model_number(&model->keys[key], sum);

    if (rc == 0) {
        *sum = (int64_t)((uint64_t)*sum + (uint64_t)delta);
        (void)snprintf(text, sizeof(text), "%" PRId64, *sum);
        model_write(model, key, 0, (const uint8_t *)text, strlen(text));
    }
    return rc;
}

/* --- both
 * ---------------------------------------------------------------------- */

struct pair {
    struct store *store;
    struct model model;
    struct waiter waiters[N_WAITERS];
};

static void compare(const struct pair *pair)
{
    const struct model *model = &pair->model;
    const struct store_entry *at = NULL;
    struct bytes value;
    size_t n_exist = 0;
    size_t n_walked = 0;
    int i;

    for (i = 0; i < N_KEYS; i++) {
        const struct model_key *key = &model->keys[i];

        CHECK(store_get(pair->store, key_of(i), &value) == key->exists);
        CHECK(!key->exists || (value.len == key->len &&
                               (key->len == 0 || memcmp(value.data, key->value,
                                                        key->len) == 0)));
        CHECK(store_queue_len(pair->store, key_of(i)) == key->n_queue);
        CHECK(store_is_ready(pair->store, key_of(i)) == model_ready(model, i));
        n_exist += key->exists;
    }
    CHECK(store_n_keys(pair->store) == n_exist);
    while ((at = store_next_key(pair->store, at, &value)) != NULL) {
        n_walked++;
    }
    CHECK(n_walked == n_exist);
    for (i = 0; i < N_WAITERS; i++) {
        CHECK(pair->waiters[i].n_done == model->n_done[i]);
        CHECK(pair->waiters[i].waiter.n_missing == model_missing(model, i));
    }
}

/* One call: its kind, key, waiter, and a value of up to three bytes. */
struct input {
    unsigned op;
    int key;
    int waiter;
    const uint8_t *value;
    size_t len;
};

static void do_write(struct pair *pair, const struct input *in, bool append)
{
    struct model_key *key = &pair->model.keys[in->key];
    const struct bytes value = { .data = in->value, .len = in->len };
    size_t at = append && key->exists ? key->len : 0;

    if (at + in->len > VALUE_MAX) {
        return;
    }
    CHECK((append ? store_append(pair->store, key_of(in->key), value)
                  : store_set(pair->store, key_of(in->key), value)) == 0);
    model_write(&pair->model, in->key, at, in->value, in->len);
    model_wake(&pair->model, in->key, true);
}

static void do_add(struct pair *pair, const struct input *in)
{
    int64_t delta = in->len > 0 ? (int8_t)in->value[0] : INT64_MAX;
    int64_t ours = 0;
    int64_t sum = 0;
    int rc = model_add(&pair->model, in->key, delta, &sum);

    CHECK(store_add(pair->store, key_of(in->key), delta, &ours) == rc);
    if (rc == 0) {
        CHECK(ours == sum);
        model_wake(&pair->model, in->key, true);
    }
}

static void do_compare_set(struct pair *pair, const struct input *in)
{
    struct model_key *key = &pair->model.keys[in->key];
    const struct bytes expected = { .data = in->value,
                                    .len = in->len > 0 ? in->len - 1 : 0 };
    const struct bytes desired = { .data = in->value, .len = in->len };
    bool equal =
        key->exists ? key->len == expected.len &&
                          (expected.len == 0 ||
                           memcmp(key->value, expected.data, expected.len) == 0)
                    : expected.len == 0;
    struct bytes result;

    CHECK(store_compare_set(pair->store, key_of(in->key), expected, desired,
                            &result) == 0);
    if (equal) {
        model_write(&pair->model, in->key, 0, in->value, in->len);
        model_wake(&pair->model, in->key, true);
        CHECK(result.len == desired.len);
    } else if (key->exists) {
        CHECK(result.len == key->len);
    } else {
        CHECK(result.len == expected.len);
    }
}

static void do_wait(struct pair *pair, const struct input *in)
{
    struct model *model = &pair->model;

    if (model->n_links == LINKS_MAX) {
        return;
    }
    CHECK(store_wait(pair->store, &pair->waiters[in->waiter].waiter,
                     key_of(in->key)) == 0);
    if (!model_ready(model, in->key)) {
        model->links[model->n_links++] =
            (struct model_link){ .waiter = in->waiter, .key = in->key };
    }
}

static void do_barrier(struct pair *pair, const struct input *in)
{
    struct model *model = &pair->model;
    int64_t world = in->len > 0 ? in->value[0] % 4 : 2;
    bool complete = false;
    int64_t count = 0;
    int rc = model_add(model, in->key, 1, &count);

    CHECK(store_barrier(pair->store, &pair->waiters[in->waiter].waiter,
                        key_of(in->key), world, &complete) == rc);
    if (rc < 0) {
        return;
    }
    CHECK(complete == (count >= world));
    if (complete) {
        model_wake(model, in->key, true);
    } else {
        model_cancel(model, in->waiter);
        model->links[model->n_links++] =
            (struct model_link){ .waiter = in->waiter, .key = in->key };
    }
}

static void do_queue(struct pair *pair, const struct input *in, bool push)
{
    struct model_key *key = &pair->model.keys[in->key];
    struct bytes value = { .data = in->value, .len = in->len > 0 };

    if (push && in->len > 0 && key->n_queue < QUEUE_MAX) {
        CHECK(store_queue_push(pair->store, key_of(in->key), value) == 0);
        key->queue[key->n_queue++] = in->value[0];
        model_wake(&pair->model, in->key, false);
    }
    if (!push) {
        CHECK(store_queue_front(pair->store, key_of(in->key), &value) ==
              key->n_queue);
        if (key->n_queue > 0) {
            CHECK(value.len == 1 && value.data[0] == key->queue[0]);
            store_queue_drop(pair->store, key_of(in->key));
            memmove(key->queue, key->queue + 1, --key->n_queue);
        }
    }
}

static void call(struct pair *pair, const struct input *in)
{
    switch (in->op) {
    case 0:
    case 1:
        do_write(pair, in, in->op == 1);
        break;
    case 2:
        do_add(pair, in);
        break;
    case 3:
        do_compare_set(pair, in);
        break;
    case 4:
        do_wait(pair, in);
        break;
    case 5:
        do_barrier(pair, in);
        break;
    case 6:
    case 7:
        do_queue(pair, in, in->op == 6);
        break;
    case 8:
        store_wait_cancel(pair->store, &pair->waiters[in->waiter].waiter);
        model_cancel(&pair->model, in->waiter);
        break;
    default:
        CHECK(store_delete(pair->store, key_of(in->key)) ==
              pair->model.keys[in->key].exists);
        pair->model.keys[in->key].exists = false;
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct store_conf conf = STORE_CONF_DEFAULT;
    static struct pair pair;
    size_t at = 0;
    int i;

    memset(&pair, 0, sizeof(pair));
    pair.store = store_create(&conf);
    CHECK(pair.store != NULL);
    for (i = 0; i < N_WAITERS; i++) {
        pair.waiters[i].waiter =
            (struct store_waiter){ .done = done, .arg = &pair.waiters[i] };
    }
    /* A NUL ends the numbers that strtoll reads: values have none. */
    while (at + 2 <= size && size < 3000) {
        struct input in = { .op = data[at] % 10,
                            .key = data[at] / 10 % N_KEYS,
                            .waiter = data[at] / 40 % N_WAITERS,
                            .value = data + at + 2,
                            .len = data[at + 1] % 4 };

        at += 2 + in.len;
        if (at > size || memchr(in.value, 0, in.len) != NULL) {
            continue;
        }
        call(&pair, &in);
        compare(&pair);
    }
    for (i = 0; i < N_WAITERS; i++) {
        store_wait_cancel(pair.store, &pair.waiters[i].waiter);
    }
    store_destroy(pair.store);
    return 0;
}
