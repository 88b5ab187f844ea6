#include "worker/checkin_host.h"

#include "common/clock.h"
#include "worker/checkin_keys.h"
#include "worker/fail.h"
#include "worker/token.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long rank 0 waits for one slot before it looks at all open ones. */
#define LOOK_MS 200
/* How long rank 0 goes on answering after a bad verdict. */
#define LINGER_MS 5000
/* Rank 0 judges this much before its deadline, at most a quarter of it. */
#define MARGIN_MS 2000
#define SLOTS_MAX 1000000

/* Rank 0's table. */
struct host {
    struct store_client *client;
    const struct checkin_record *self;
    struct checkin_record *seats;
    uint32_t n_told;       /* records of others that got the verdict */
    uint32_t n_ranks_told; /* and how many ranks those are */
    bool *rank_told;
    int64_t n_slots;    /* slots given out so far */
    int64_t first_open; /* all slots before it have been read */
    bool *slot_read;    /* from slot 1 on */
    uint64_t started_ms;
    char verdict[VERDICT_MAX];
    char reached[64]; /* by ranks of other machines; "" where there are none */
    bool judged;
};

static int set_text(struct store_client *client, const char *key,
                    const char *text, uint64_t deadline_ms,
                    struct flaunch_error *error)
{
    struct bytes value = { .data = (const uint8_t *)text, .len = strlen(text) };
    struct err err;

    return store_client_set(client, key, value, deadline_ms, &err) < 0
               ? fail_store(error, &err)
               : 0;
}

/* Answer one record: "again" where it echoes an old nonce, else text. */
static int answer(struct host *host, const struct checkin_record *record,
                  const char *kind, const char *text, uint64_t deadline_ms,
                  struct flaunch_error *error)
{
    char value[VERDICT_MAX + 16];
    char key[CHECKIN_KEY_MAX];

    (void)snprintf(key, sizeof(key), CHECKIN_PREFIX "answer/%s", record->token);
    (void)snprintf(value, sizeof(value), "%s%s", kind, text);
    return set_text(host->client, key, value, deadline_ms, error);
}

static int answer_verdict(struct host *host,
                          const struct checkin_record *record,
                          uint64_t deadline_ms, struct flaunch_error *error)
{
    bool ok = host->verdict[0] == '\0';

    host->n_told++;
    if (record->rank < host->self->world_size &&
        !host->rank_told[record->rank]) {
        host->rank_told[record->rank] = true;
        host->n_ranks_told++;
    }
    return ok ? answer(host, record, CHECKIN_OK, host->reached, deadline_ms,
                       error)
              : answer(host, record, CHECKIN_FAIL, host->verdict, deadline_ms,
                       error);
}

/* A record with the right nonce: seat it, or see that the seat is taken. */
static void seat_take(struct host *host, const struct checkin_record *record)
{
    struct checkin_record *seat;

    if (record->rank >= host->self->world_size) {
        (void)snprintf(host->verdict, VERDICT_MAX,
                       "rank %u on %s has WORLD_SIZE %u and rank 0 has %u",
                       record->rank, record->host, record->world_size,
                       host->self->world_size);
        return;
    }
    seat = &host->seats[record->rank];
    if (seat->token[0] != '\0') {
        (void)snprintf(host->verdict, VERDICT_MAX,
                       "rank %u is there twice: pid %u on %s and pid %u on %s",
                       record->rank, seat->pid, seat->host, record->pid,
                       record->host);
        return;
    }
    *seat = *record;
}

static int slot_take(struct host *host, int64_t slot, uint64_t deadline_ms,
                     struct flaunch_error *error)
{
    struct checkin_record record;
    struct buf value = { 0 };
    char key[CHECKIN_KEY_MAX];
    struct err err;
    int rc;

    (void)snprintf(key, sizeof(key), CHECKIN_PREFIX "mail/%" PRId64, slot);
    if (store_client_get(host->client, key, deadline_ms, &value, &err) < 0) {
        return fail_store(error, &err);
    }
    rc = checkin_record_decode(value.data, value.len, &record);
    buf_destroy(&value);
    if (rc < 0) {
        return 0; /* not from a rank of ours */
    }
    if (strcmp(record.nonce, host->self->nonce) != 0) {
        return answer(host, &record, CHECKIN_AGAIN, host->self->nonce,
                      deadline_ms, error);
    }
    if (host->judged) {
        return answer_verdict(host, &record, deadline_ms, error);
    }
    seat_take(host, &record);
    /* A record without a seat (a double) gets its answer with the verdict. */
    if (host->verdict[0] != '\0') {
        return answer_verdict(host, &record, deadline_ms, error);
    }
    return 0;
}

/* Room to note slots up to n. */
static int slots_grow(struct host *host, int64_t n, struct flaunch_error *error)
{
    bool *slot_read;

    if (n <= host->n_slots) {
        return 0;
    }
    if (n > SLOTS_MAX) {
        return fail_set(error, FLAUNCH_STORE, -EPROTO,
                        "the store's check-in counter says %" PRId64, n);
    }
    slot_read = realloc(host->slot_read, ((size_t)n + 1) * sizeof(*slot_read));
    if (slot_read == NULL) {
        return fail_set(error, FLAUNCH_SYSTEM, -ENOMEM, "out of memory");
    }
    memset(slot_read + host->n_slots + 1, 0,
           (size_t)(n - host->n_slots) * sizeof(*slot_read));
    host->slot_read = slot_read;
    host->n_slots = n;
    return 0;
}

/*
 * Read every slot that is filled. One may have been given out and stay empty
 * for ever, where its owner died in between; the others must not wait for it.
 */
static int slots_look(struct host *host, uint64_t deadline_ms,
                      bool *progress_out, struct flaunch_error *error)
{
    struct err err;
    int64_t slot;
    int64_t n;
    int rc;

    *progress_out = false;
    if (store_client_add(host->client, CHECKIN_PREFIX "seq", 0, deadline_ms, &n,
                         &err) < 0) {
        return fail_store(error, &err);
    }
    rc = slots_grow(host, n, error);
    for (slot = host->first_open; slot <= host->n_slots && rc == 0; slot++) {
        char key[CHECKIN_KEY_MAX];
        bool filled;

        if (host->slot_read[slot]) {
            continue;
        }
        (void)snprintf(key, sizeof(key), CHECKIN_PREFIX "mail/%" PRId64, slot);
        if (store_client_check(host->client, key, deadline_ms, &filled, &err) <
            0) {
            return fail_store(error, &err);
        }
        if (filled) {
            host->slot_read[slot] = true;
            *progress_out = true;
            rc = slot_take(host, slot, deadline_ms, error);
        }
    }
    while (host->first_open <= host->n_slots &&
           host->slot_read[host->first_open]) {
        host->first_open++;
    }
    return rc;
}

/* Wait a little for the first slot that is open. */
static int slots_wait(struct host *host, uint64_t until_ms,
                      struct flaunch_error *error)
{
    uint64_t look_ms = clock_deadline(LOOK_MS);
    char key[CHECKIN_KEY_MAX];
    struct err err;
    int rc;

    (void)snprintf(key, sizeof(key), CHECKIN_PREFIX "mail/%" PRId64,
                   host->first_open);
    rc = store_client_wait(host->client, key, clock_earlier(look_ms, until_ms),
                           &err);
    return rc < 0 && rc != -ETIMEDOUT ? fail_store(error, &err) : 0;
}

/* Another process that is rank 0 as well has published its nonce. */
static int check_alone(struct host *host, uint64_t deadline_ms,
                       struct flaunch_error *error)
{
    struct buf value = { 0 };
    struct err err;
    bool mine;

    if (store_client_get(host->client, CHECKIN_PREFIX "nonce", deadline_ms,
                         &value, &err) < 0) {
        return fail_store(error, &err);
    }
    mine = value.len >= TOKEN_LEN &&
           memcmp(value.data, host->self->nonce, TOKEN_LEN) == 0;
    buf_destroy(&value);
    return mine ? 0
                : fail_set(error, FLAUNCH_CHECKIN, -EEXIST,
                           "rank 0 is there twice: another process of this "
                           "job is rank 0 as well");
}

/* Collect records until the verdict is known. */
static int host_collect(struct host *host, uint64_t judge_ms,
                        uint64_t deadline_ms, struct flaunch_error *error)
{
    for (;;) {
        bool late = clock_ms() >= judge_ms;
        double waited_s = (double)(clock_ms() - host->started_ms) / 1000;
        bool progress;
        int rc = slots_look(host, deadline_ms, &progress, error);

        if (rc < 0) {
            return rc;
        }
        if (host->verdict[0] != '\0' ||
            checkin_judge(host->seats, host->self->world_size,
                          late ? waited_s : 0, host->verdict)) {
            return 0;
        }
        if (progress) {
            continue;
        }
        rc = slots_wait(host, judge_ms, error);
        if (rc == 0) {
            rc = check_alone(host, deadline_ms, error);
        }
        if (rc < 0) {
            return rc;
        }
    }
}

/* After a bad verdict, tell it to those who come a little later, too. */
static int host_linger(struct host *host, uint64_t deadline_ms,
                       struct flaunch_error *error)
{
    uint64_t linger_ms = clock_deadline(LINGER_MS);
    uint64_t until_ms = clock_earlier(linger_ms, deadline_ms);
    int rc = 0;

    while (rc == 0 && host->n_ranks_told + 1 < host->self->world_size &&
           clock_ms() < until_ms) {
        bool progress;

        rc = slots_look(host, deadline_ms, &progress, error);
        if (rc == 0 && !progress) {
            rc = slots_wait(host, until_ms, error);
        }
    }
    return rc;
}

/* Where a rank of another machine reached the store, which is beside us. */
static void find_reached(struct host *host)
{
    uint32_t rank;

    for (rank = 1; rank < host->self->world_size; rank++) {
        const struct checkin_record *seat = &host->seats[rank];

        if (seat->token[0] != '\0' && !checkin_same_machine(seat, host->self)) {
            (void)snprintf(host->reached, sizeof(host->reached), "%s",
                           seat->reached);
            return;
        }
    }
}

static int host_answer_all(struct host *host, uint64_t deadline_ms,
                           struct flaunch_error *error)
{
    uint32_t rank;
    int rc = 0;

    host->judged = true;
    find_reached(host);
    for (rank = 1; rank < host->self->world_size && rc == 0; rank++) {
        if (host->seats[rank].token[0] != '\0') {
            rc = answer_verdict(host, &host->seats[rank], deadline_ms, error);
        }
    }
    return rc;
}

/* The nonce, and for people whose it is. */
static int publish_nonce(struct host *host, uint64_t deadline_ms,
                         struct flaunch_error *error)
{
    char text[TOKEN_LEN + 300];

    (void)snprintf(text, sizeof(text), "%s pid %u on %s", host->self->nonce,
                   host->self->pid, host->self->host);
    return set_text(host->client, CHECKIN_PREFIX "nonce", text, deadline_ms,
                    error);
}

/* Publish the nonce, collect, judge, answer: 0 where all is well. */
static int host_run(struct host *host, uint64_t deadline_ms,
                    struct flaunch_error *error)
{
    uint64_t margin_ms = (deadline_ms - host->started_ms) / 4;
    int rc;

    margin_ms = margin_ms < MARGIN_MS ? margin_ms : MARGIN_MS;
    rc = publish_nonce(host, deadline_ms, error);
    if (rc == 0) {
        rc = host_collect(host, deadline_ms - margin_ms, deadline_ms, error);
    }
    if (rc == 0) {
        rc = host_answer_all(host, deadline_ms, error);
    }
    if (rc == 0 && host->verdict[0] != '\0') {
        (void)host_linger(host, deadline_ms, NULL);
        rc = fail_set(error, FLAUNCH_CHECKIN, -EHOSTDOWN, "%s", host->verdict);
    }
    return rc;
}

int checkin_host(struct store_client *client, struct checkin_record *self,
                 uint64_t deadline_ms, uint32_t *n_told_out,
                 char warning_out[VERDICT_MAX], struct flaunch_error *error)
{
    struct checkin_record *seats = calloc(self->world_size, sizeof(*seats));
    bool *rank_told = calloc(self->world_size, sizeof(*rank_told));
    struct host host = { .client = client,
                         .self = self,
                         .seats = seats,
                         .rank_told = rank_told,
                         .first_open = 1,
                         .started_ms = clock_ms() };
    int rc = -ENOMEM;

    if (seats == NULL || rank_told == NULL) {
        (void)fail_set(error, FLAUNCH_SYSTEM, rc, "out of memory");
        goto out;
    }
    token_make(self->nonce);
    token_make(self->token);
    seats[0] = *self;
    rc = host_run(&host, deadline_ms, error);
    *n_told_out = host.n_told;
    if (rc == 0) {
        checkin_warn(seats, self->world_size, warning_out);
    }
    (void)snprintf(self->reached, sizeof(self->reached), "%s", host.reached);
out:
    free(host.slot_read);
    free(rank_told);
    free(seats);
    return rc;
}
