#include "worker/checkin.h"

#include "common/clock.h"
#include "worker/checkin_host.h"
#include "worker/checkin_keys.h"
#include "worker/fail.h"
#include "worker/token.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long another rank waits for rank 0 before it lets itself be seen. */
#define EARLY_MS 1000
/* Records that are read to say who else waits, and how long that may take. */
#define SEEN_MAX 512
#define SEEN_MS 5000
/* Records from before are an earlier attempt's. */
#define SEEN_S 3600

/* Post the record once: 0 or a negative errno. */
static int post(struct store_client *client, struct checkin_record *self,
                uint64_t deadline_ms, struct flaunch_error *error)
{
    struct buf value = { 0 };
    char key[CHECKIN_KEY_MAX];
    struct err err;
    int64_t slot;
    int rc;

    token_make(self->token);
    rc = checkin_record_encode(&value, self);
    if (rc < 0) {
        buf_destroy(&value);
        return fail_set(error, FLAUNCH_SYSTEM, rc, "out of memory");
    }
    rc = store_client_add(client, CHECKIN_PREFIX "seq", 1, deadline_ms, &slot,
                          &err);
    if (rc == 0) {
        (void)snprintf(key, sizeof(key), CHECKIN_PREFIX "mail/%" PRId64, slot);
        rc = store_client_set(
            client, key, (struct bytes){ .data = value.data, .len = value.len },
            deadline_ms, &err);
    }
    buf_destroy(&value);
    return rc < 0 ? fail_store(error, &err) : 0;
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
    uint64_t deadline_ms = clock_deadline(SEEN_MS);
    size_t len = 0;
    int64_t slot;
    int64_t n;

    text[0] = '\0';
    if (store_client_add(client, CHECKIN_PREFIX "seq", 0, deadline_ms, &n,
                         NULL) < 0) {
        return;
    }
    for (slot = n > SEEN_MAX ? n - SEEN_MAX + 1 : 1; slot <= n; slot++) {
        struct checkin_record record;
        struct buf value = { 0 };
        char name[300];
        char key[CHECKIN_KEY_MAX];
        bool filled = false;
        bool good;

        (void)snprintf(key, sizeof(key), CHECKIN_PREFIX "mail/%" PRId64, slot);
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
        return fail_store(error, err);
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
    int rc = get_text(client, CHECKIN_PREFIX "nonce", text, sizeof(text),
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
    char key[CHECKIN_KEY_MAX];
    struct err err;
    int rc;

    rc = await_rank_0(client, self, owner, sizeof(owner), deadline_ms, &err);
    while (rc == 0) {
        rc = post(client, self, deadline_ms, error);
        if (rc < 0) {
            return rc;
        }
        (void)snprintf(key, sizeof(key), CHECKIN_PREFIX "answer/%s",
                       self->token);
        rc = get_text(client, key, text, sizeof(text), deadline_ms, &err);
        if (rc < 0) {
            break;
        }
        if (starts_with(text, CHECKIN_OK)) {
            (void)snprintf(self->reached, sizeof(self->reached), "%.63s",
                           text + strlen(CHECKIN_OK));
            return 0;
        }
        if (starts_with(text, CHECKIN_FAIL)) {
            return fail_set(error, FLAUNCH_CHECKIN, -EHOSTDOWN, "%s",
                            text + strlen(CHECKIN_FAIL));
        }
        if (!starts_with(text, CHECKIN_AGAIN)) {
            return fail_set(error, FLAUNCH_STORE, -EPROTO,
                            "the store holds a strange answer of rank 0");
        }
        (void)snprintf(self->nonce, sizeof(self->nonce), "%.*s", TOKEN_LEN,
                       text + strlen(CHECKIN_AGAIN));
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
    return self->rank == 0 ? checkin_host(client, self, deadline_ms, n_told_out,
                                          warning_out, error)
                           : run_other(client, self, deadline_ms, error);
}
