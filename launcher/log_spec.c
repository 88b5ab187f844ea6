#include "launcher/log_spec.h"

#include "common/parse.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RANK_TEXT_MAX 24

/* One number of text[0..len): 0 or -EINVAL. */
static int parse_rank(const char *text, size_t len, int64_t *rank_out)
{
    char copy[RANK_TEXT_MAX];

    if (len == 0 || len >= sizeof(copy)) {
        return -EINVAL;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    return parse_int(copy, 0, UINT32_MAX, rank_out) == 0 ? 0 : -EINVAL;
}

/* "3", "0-3" or "all": the first and the last rank. */
static int parse_ranks(const char *text, size_t len, uint32_t n_workers,
                       int64_t *first_out, int64_t *last_out)
{
    const char *dash = memchr(text, '-', len);
    int rc;

    if (len == strlen("all") && memcmp(text, "all", len) == 0) {
        *first_out = 0;
        *last_out = (int64_t)n_workers - 1;
        return 0;
    }
    if (dash == NULL) {
        rc = parse_rank(text, len, first_out);
        *last_out = rc == 0 ? *first_out : 0;
        return rc;
    }
    rc = parse_rank(text, (size_t)(dash - text), first_out);
    if (rc == 0) {
        rc = parse_rank(dash + 1, (size_t)(text + len - dash) - 1, last_out);
    }
    return rc == 0 && *first_out <= *last_out ? 0 : -EINVAL;
}

static bool is_what(char c)
{
    return c >= '0' && c <= '3';
}

static int malformed(const char *option, const char *text, struct err *err)
{
    return err_set(err, -EINVAL,
                   "--%s=%s: give 0 (neither), 1 (stdout), 2 (stderr) or 3 "
                   "(both), for all workers or by local rank, such as "
                   "0:3,1-3:2,all:1",
                   option, text);
}

static int parse_item(const char *option, const char *text, const char *item,
                      size_t len, uint32_t n_workers, uint8_t *what,
                      struct err *err)
{
    int64_t first;
    int64_t last;

    if (len < 3 || item[len - 2] != ':' || !is_what(item[len - 1]) ||
        parse_ranks(item, len - 2, n_workers, &first, &last) < 0) {
        return malformed(option, text, err);
    }
    if (last >= n_workers) {
        return err_set(err, -EINVAL,
                       "--%s=%s: there is no local rank %lld; ranks go from 0 "
                       "to %u",
                       option, text, (long long)last, n_workers - 1);
    }
    memset(what + first, item[len - 1] - '0', (size_t)(last - first) + 1);
    return 0;
}

int log_spec_parse(const char *option, const char *text, uint32_t n_workers,
                   uint8_t *what_out, struct err *err)
{
    const char *cursor = text;
    const char *item;
    size_t len;
    int rc = 0;

    if (is_what(text[0]) && text[1] == '\0') {
        memset(what_out, text[0] - '0', n_workers);
        return 0;
    }
    if (strchr(text, ' ') != NULL || strchr(text, '\t') != NULL) {
        return malformed(option, text, err); /* as torchrun's */
    }
    memset(what_out, 0, n_workers);
    while (rc == 0 && parse_list_next(&cursor, &item, &len)) {
        rc = parse_item(option, text, item, len, n_workers, what_out, err);
    }
    return rc;
}

int log_filter_parse(const char *text, uint32_t n_workers, bool *shown_out,
                     struct err *err)
{
    const char *cursor = text;
    const char *item;
    size_t len;

    memset(shown_out, text[0] == '\0', n_workers);
    while (text[0] != '\0' && parse_list_next(&cursor, &item, &len)) {
        int64_t first;
        int64_t last;

        if (parse_ranks(item, len, n_workers, &first, &last) < 0) {
            return err_set(err, -EINVAL,
                           "--local-ranks-filter=%s: give local ranks, such "
                           "as 0,2 or 0-3",
                           text);
        }
        for (; first <= last && first < n_workers; first++) {
            shown_out[first] = true;
        }
    }
    return 0;
}

/* One stream that is not redirected, where the two are apart. */
static uint32_t apart_kind(const struct log_screen *screen, uint32_t n_workers,
                           int number, bool hidden)
{
    if (screen->terminal[number] || screen->pty) {
        return GUARD_STREAM_PTY;
    }
    if (n_workers == 1 && number == GUARD_OUT && !screen->prefix && !hidden) {
        return GUARD_STREAM_OURS;
    }
    return GUARD_STREAM_PIPE;
}

/* Both streams through one channel, so that their order is kept. */
static void streams_same(const struct log_screen *screen, uint32_t n_workers,
                         bool hidden, struct guard_stream streams[2])
{
    streams[GUARD_ERR].kind = GUARD_STREAM_JOINED;
    if (screen->terminal[GUARD_OUT] || screen->pty) {
        streams[GUARD_OUT].kind = GUARD_STREAM_PTY;
    } else if (n_workers == 1 && !screen->prefix && !hidden) {
        streams[GUARD_OUT].kind = GUARD_STREAM_OURS;
        streams[GUARD_ERR].kind = GUARD_STREAM_OURS;
    } else {
        streams[GUARD_OUT].kind = GUARD_STREAM_PIPE;
    }
}

void log_spec_streams(const struct log_choice *choice,
                      const struct log_screen *screen, uint32_t n_workers,
                      struct guard_stream streams_out[2])
{
    static const uint8_t bits[2] = { LOG_OUT, LOG_ERR };
    uint8_t files = choice->redirect | choice->tee;
    int i;

    for (i = 0; i < 2; i++) {
        streams_out[i] = (struct guard_stream){ .kind = GUARD_STREAM_OURS,
                                                .shown = !choice->hidden,
                                                .path = "" };
    }
    if (files == 0 && screen->raw) {
        return;
    }
    if (files == 0 && screen->same) {
        streams_same(screen, n_workers, choice->hidden, streams_out);
        return;
    }
    for (i = 0; i < 2; i++) {
        if ((files & bits[i]) != 0) {
            streams_out[i].kind = GUARD_STREAM_FILE;
        } else if (!screen->raw) {
            streams_out[i].kind =
                apart_kind(screen, n_workers, i, choice->hidden);
        }
    }
}

void log_screen_look(struct log_screen *screen)
{
    struct stat status[2];
    bool known = fstat(STDOUT_FILENO, &status[0]) == 0 &&
                 fstat(STDERR_FILENO, &status[1]) == 0;

    screen->same = known && status[0].st_dev == status[1].st_dev &&
                   status[0].st_ino == status[1].st_ino;
    screen->terminal[GUARD_OUT] = isatty(STDOUT_FILENO) == 1;
    screen->terminal[GUARD_ERR] = isatty(STDERR_FILENO) == 1;
}
