#include "worker/checkin.h"

#include "common/clock.h"
#include "worker/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define KEY_PREFIX "flaunch/checkin/"
#define KEY_MAX 128
/* How long rank 0 waits for one slot before it looks at all open ones. */
#define LOOK_MS 200
/* How long another rank waits for rank 0 before it lets itself be seen. */
#define EARLY_MS 1000
/* Records that are read to say who else waits. */
#define SEEN_MAX 512
/* Records from before are an earlier attempt's. */
#define SEEN_S 3600
/* How long rank 0 goes on answering after a bad verdict. */
#define LINGER_MS 5000
/* Rank 0 judges this much before its deadline, at most a quarter of it. */
#define MARGIN_MS 2000
#define SLOTS_MAX 1000000

static const char answer_again[] = "again ";
static const char answer_ok[] = "ok "; /* and where rank 0 is reached */
static const char answer_fail[] = "fail ";

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

void checkin_token(char token_out[TOKEN_LEN + 1])
{
    uint8_t raw[TOKEN_LEN / 2];
    size_t i;

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw)) {
        uint64_t now = clock_ns() ^ (uint64_t)getpid() << 40;

        for (i = 0; i < sizeof(raw); i++) {
            raw[i] = (uint8_t)(now >> 8 * (i % 8));
        }
    }
    for (i = 0; i < sizeof(raw); i++) {
        (void)snprintf(token_out + 2 * i, 3, "%02x", raw[i]);
    }
}

static int store_failed(struct flaunch_error *error, const struct err *err)
{
    return fail_set(error, FLAUNCH_STORE, err->code, "%s", err->text);
}

static int set_text(struct store_client *client, const char *key,
                    const char *text, uint64_t deadline_ms,
                    struct flaunch_error *error)
{
    struct bytes value = { .data = (const uint8_t *)text, .len = strlen(text) };
    struct err err;

    return store_client_set(client, key, value, deadline_ms, &err) < 0
               ? store_failed(error, &err)
               : 0;
}

/* Answer one record: "again" where it echoes an old nonce, else text. */
static int answer(struct host *host, const struct checkin_record *record,
                  const char *kind, const char *text, uint64_t deadline_ms,
                  struct flaunch_error *error)
{
    char value[VERDICT_MAX + 16];
    char key[KEY_MAX];

    (void)snprintf(key, sizeof(key), KEY_PREFIX "answer/%s", record->token);
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
    return ok ? answer(host, record, answer_ok, host->reached, deadline_ms,
                       error)
              : answer(host, record, answer_fail, host->verdict, deadline_ms,
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
    char key[KEY_MAX];
    struct err err;
    int rc;

    (void)snprintf(key, sizeof(key), KEY_PREFIX "mail/%" PRId64, slot);
    if (store_client_get(host->client, key, deadline_ms, &value, &err) < 0) {
        return store_failed(error, &err);
    }
    rc = checkin_record_decode(value.data, value.len, &record);
    buf_destroy(&value);
    if (rc < 0) {
        return 0; /* not from a rank of ours */
    }
    if (strcmp(record.nonce, host->self->nonce) != 0) {
        return answer(host, &record, answer_again, host->self->nonce,
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
    if (store_client_add(host->client, KEY_PREFIX "seq", 0, deadline_ms, &n,
                         &err) < 0) {
        return store_failed(error, &err);
    }
    rc = slots_grow(host, n, error);
    for (slot = host->first_open; slot <= host->n_slots && rc == 0; slot++) {
        char key[KEY_MAX];
        bool filled;

        if (host->slot_read[slot]) {
            continue;
        }
        (void)snprintf(key, sizeof(key), KEY_PREFIX "mail/%" PRId64, slot);
        if (store_client_check(host->client, key, deadline_ms, &filled, &err) <
            0) {
            return store_failed(error, &err);
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
    char key[KEY_MAX];
    struct err err;
    int rc;

    (void)snprintf(key, sizeof(key), KEY_PREFIX "mail/%" PRId64,
                   host->first_open);
    rc = store_client_wait(host->client, key,
                           look_ms < until_ms ? look_ms : until_ms, &err);
    return rc < 0 && rc != -ETIMEDOUT ? store_failed(error, &err) : 0;
}

/* Another process that is rank 0 as well has published its nonce. */
static int check_alone(struct host *host, uint64_t deadline_ms,
                       struct flaunch_error *error)
{
    struct buf value = { 0 };
    struct err err;
    bool mine;

    if (store_client_get(host->client, KEY_PREFIX "nonce", deadline_ms, &value,
                         &err) < 0) {
        return store_failed(error, &err);
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
    uint64_t until_ms = linger_ms < deadline_ms ? linger_ms : deadline_ms;
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
    return set_text(host->client, KEY_PREFIX "nonce", text, deadline_ms, error);
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

static int run_rank_0(struct store_client *client, struct checkin_record *self,
                      uint64_t deadline_ms, uint32_t *n_told_out,
                      char warning_out[VERDICT_MAX],
                      struct flaunch_error *error)
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
    checkin_token(self->nonce);
    checkin_token(self->token);
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

/* Post the record once: 0 or a negative errno. */
static int post(struct store_client *client, struct checkin_record *self,
                uint64_t deadline_ms, struct flaunch_error *error)
{
    struct buf value = { 0 };
    char key[KEY_MAX];
    struct err err;
    int64_t slot;
    int rc;

    checkin_token(self->token);
    rc = checkin_record_encode(&value, self);
    if (rc < 0) {
        buf_destroy(&value);
        return fail_set(error, FLAUNCH_SYSTEM, rc, "out of memory");
    }
    rc =
        store_client_add(client, KEY_PREFIX "seq", 1, deadline_ms, &slot, &err);
    if (rc == 0) {
        (void)snprintf(key, sizeof(key), KEY_PREFIX "mail/%" PRId64, slot);
        rc = store_client_set(
            client, key, (struct bytes){ .data = value.data, .len = value.len },
            deadline_ms, &err);
    }
    buf_destroy(&value);
    return rc < 0 ? store_failed(error, &err) : 0;
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* A short text from the store; cut where it is longer. */
static int get_text(struct store_client *client, const char *key, char *text,
                    size_t size, uint64_t deadline_ms, struct err *err)
{
    struct buf value = { 0 };
    size_t len;
    int rc = store_client_get(client, key, deadline_ms, &value, err);

    if (rc < 0) {
        return rc;
    }
    len = value.len < size - 1 ? value.len : size - 1;
    if (len > 0) {
        memcpy(text, value.data, len);
    }
    text[len] = '\0';
    buf_destroy(&value);
    return 0;
}

/* Append the ranks whose records are in the store, each once. */
static void list_seen(struct store_client *client,
                      const struct checkin_record *self, char *text,
                      size_t size)
{
    uint64_t deadline_ms = clock_deadline(LINGER_MS);
    size_t len = 0;
    int64_t slot;
    int64_t n;

    text[0] = '\0';
    if (store_client_add(client, KEY_PREFIX "seq", 0, deadline_ms, &n, NULL) <
        0) {
        return;
    }
    for (slot = n > SEEN_MAX ? n - SEEN_MAX + 1 : 1; slot <= n; slot++) {
        struct checkin_record record;
        struct buf value = { 0 };
        char name[300];
        char key[KEY_MAX];
        bool filled = false;
        bool good;

        (void)snprintf(key, sizeof(key), KEY_PREFIX "mail/%" PRId64, slot);
        if (store_client_check(client, key, deadline_ms, &filled, NULL) < 0 ||
            !filled ||
            store_client_get(client, key, deadline_ms, &value, NULL) < 0) {
            continue;
        }
        good = checkin_record_decode(value.data, value.len, &record) == 0 &&
               record.posted_s + SEEN_S > self->posted_s;
        buf_destroy(&value);
        (void)snprintf(name, sizeof(name), "rank %u on %.200s", record.rank,
                       record.host);
        if (good && strstr(text, name) == NULL && len + 310 < size) {
            len += (size_t)snprintf(text + len, size - len, "%s%s",
                                    len > 0 ? ", " : "; here: ", name);
        }
    }
}

/* No answer of rank 0: who it was, if it was there, and who else waits. */
static int rank_0_silent(struct store_client *client,
                         const struct checkin_record *self, const char *owner,
                         int rc, const struct err *err, uint64_t started_ms,
                         struct flaunch_error *error)
{
    double seconds = (double)(clock_ms() - started_ms) / 1000;
    char seen[700];

    if (rc != -ETIMEDOUT) {
        return store_failed(error, err);
    }
    list_seen(client, self, seen, sizeof(seen));
    if (owner[0] == '\0') {
        return fail_set(error, FLAUNCH_CHECKIN, rc,
                        "rank 0 did not come within %.1f s%s", seconds, seen);
    }
    return fail_set(
        error, FLAUNCH_CHECKIN, rc,
        "rank 0 gave no verdict within %.1f s (last seen: %.280s)%s", seconds,
        owner, seen);
}

/* The nonce that is there, and behind it whose it is. */
static int get_nonce(struct store_client *client, struct checkin_record *self,
                     char *owner, size_t owner_size, uint64_t deadline_ms,
                     struct err *err)
{
    char text[TOKEN_LEN + 300];
    int rc = get_text(client, KEY_PREFIX "nonce", text, sizeof(text),
                      deadline_ms, err);

    if (rc == 0) {
        (void)snprintf(self->nonce, sizeof(self->nonce), "%.*s", TOKEN_LEN,
                       text);
        (void)snprintf(owner, owner_size, "%s",
                       strlen(text) > TOKEN_LEN ? text + TOKEN_LEN + 1 : "");
    }
    return rc;
}

/* Wait for rank 0; where it takes long, be seen by those who wait as well. */
static int await_rank_0(struct store_client *client,
                        struct checkin_record *self, char *owner,
                        size_t owner_size, uint64_t deadline_ms,
                        struct err *err)
{
    uint64_t early_ms = clock_deadline(EARLY_MS);
    int rc;

    if (early_ms < deadline_ms) {
        rc = get_nonce(client, self, owner, owner_size, early_ms, err);
        if (rc != -ETIMEDOUT) {
            return rc;
        }
        (void)post(client, self, deadline_ms, NULL);
    }
    return get_nonce(client, self, owner, owner_size, deadline_ms, err);
}

static int run_other(struct store_client *client, struct checkin_record *self,
                     uint64_t deadline_ms, struct flaunch_error *error)
{
    uint64_t started_ms = clock_ms();
    char text[VERDICT_MAX + 16];
    char owner[300] = "";
    char key[KEY_MAX];
    struct err err;
    int rc;

    rc = await_rank_0(client, self, owner, sizeof(owner), deadline_ms, &err);
    while (rc == 0) {
        rc = post(client, self, deadline_ms, error);
        if (rc < 0) {
            return rc;
        }
        (void)snprintf(key, sizeof(key), KEY_PREFIX "answer/%s", self->token);
        rc = get_text(client, key, text, sizeof(text), deadline_ms, &err);
        if (rc < 0) {
            break;
        }
        if (starts_with(text, answer_ok)) {
            (void)snprintf(self->reached, sizeof(self->reached), "%.63s",
                           text + strlen(answer_ok));
            return 0;
        }
        if (starts_with(text, answer_fail)) {
            return fail_set(error, FLAUNCH_CHECKIN, -EHOSTDOWN, "%s",
                            text + strlen(answer_fail));
        }
        if (!starts_with(text, answer_again)) {
            return fail_set(error, FLAUNCH_STORE, -EPROTO,
                            "the store holds a strange answer of rank 0");
        }
        (void)snprintf(self->nonce, sizeof(self->nonce), "%.*s", TOKEN_LEN,
                       text + strlen(answer_again));
    }
    return rank_0_silent(client, self, owner, rc, &err, started_ms, error);
}

int checkin(struct store_client *client, struct checkin_record *self,
            uint64_t deadline_ms, uint32_t *n_told_out,
            char warning_out[VERDICT_MAX], struct flaunch_error *error)
{
    *n_told_out = 0;
    warning_out[0] = '\0';
    self->posted_s = (uint32_t)time(NULL);
    return self->rank == 0 ? run_rank_0(client, self, deadline_ms, n_told_out,
                                        warning_out, error)
                           : run_other(client, self, deadline_ms, error);
}
