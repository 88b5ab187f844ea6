#include "launcher/rdzv_conf.h"

#include "common/parse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum key_kind {
    KEY_SECONDS,
    KEY_COUNT,
    KEY_BOOL,
    KEY_STORE,
    KEY_UNUSED,
};

/* Where the values of keep_alive_* are kept until both are known. */
struct keep_alive {
    uint64_t interval_ms;
    int64_t attempts;
};

static const struct key {
    const char *name;
    enum key_kind kind;
} keys[] = {
    { "join_timeout", KEY_SECONDS },
    { "timeout", KEY_SECONDS },
    { "last_call_timeout", KEY_SECONDS },
    { "keep_alive_interval", KEY_SECONDS },
    { "keep_alive_max_attempt", KEY_COUNT },
    { "is_host", KEY_BOOL },
    { "store_type", KEY_STORE },
    { "read_timeout", KEY_UNUSED },
    { "close_timeout", KEY_UNUSED },
    { "heartbeat_timeout", KEY_UNUSED },
    { "rank", KEY_UNUSED },
};

#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

static const struct key *key_find(const char *name, size_t len)
{
    size_t i;

    for (i = 0; i < N_KEYS; i++) {
        if (strlen(keys[i].name) == len &&
            memcmp(keys[i].name, name, len) == 0) {
            return &keys[i];
        }
    }
    return NULL;
}

/* Python's words, as torchrun takes them: 1, 0, or -1 for neither. */
static int bool_of(const char *value)
{
    static const char *const yes[] = { "1", "true", "t", "yes", "y" };
    static const char *const no[] = { "0", "false", "f", "no", "n" };
    size_t i;

    for (i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        if (strcasecmp(value, yes[i]) == 0) {
            return 1;
        }
        if (strcasecmp(value, no[i]) == 0) {
            return 0;
        }
    }
    return -1;
}

static void take_seconds(const char *name, uint64_t ms, struct rdzv_conf *conf,
                         struct keep_alive *alive)
{
    if (strcmp(name, "last_call_timeout") == 0) {
        conf->last_call_ms = ms;
    } else if (strcmp(name, "keep_alive_interval") == 0) {
        alive->interval_ms = ms;
    } else if (strcmp(name, "join_timeout") == 0 || conf->join_ms == 0) {
        conf->join_ms = ms;
    }
}

static int bad_value(const char *name, const char *value, const char *want,
                     struct err *err)
{
    return err_set(err, -EINVAL, "--rdzv-conf: %s=%.64s: give %s", name, value,
                   want);
}

static int take(const struct key *key, const char *value,
                struct rdzv_conf *conf, struct keep_alive *alive,
                struct err *err)
{
    uint64_t ms;

    switch (key->kind) {
    case KEY_SECONDS:
        if (parse_seconds(value, &ms) < 0 || ms == 0) {
            return bad_value(key->name, value, "seconds, such as 30", err);
        }
        take_seconds(key->name, ms, conf, alive);
        return 0;
    case KEY_COUNT:
        if (parse_int(value, 1, INT32_MAX, &alive->attempts) < 0) {
            return bad_value(key->name, value, "a number from 1", err);
        }
        return 0;
    case KEY_BOOL:
        conf->is_host = bool_of(value);
        return conf->is_host >= 0
                   ? 0
                   : bad_value(key->name, value, "true or false", err);
    case KEY_STORE:
        conf->by_file = strcmp(value, "file") == 0;
        return conf->by_file || strcmp(value, "tcp") == 0
                   ? 0
                   : bad_value(key->name, value, "tcp or file", err);
    case KEY_UNUSED:
        break;
    }
    return 0;
}

static void note_unknown(struct rdzv_conf *conf, const char *name, size_t len)
{
    size_t at = strlen(conf->unknown);

    (void)snprintf(conf->unknown + at, sizeof(conf->unknown) - at, "%s%.*s",
                   at > 0 ? ", " : "", (int)(len < 64 ? len : 64), name);
}

/* One "key=value", blanks around either dropped. */
static int take_item(const char *item, size_t len, struct rdzv_conf *conf,
                     struct keep_alive *alive, struct err *err)
{
    const char *equals = memchr(item, '=', len);
    const struct key *key;
    size_t name_len;
    char value[128];
    size_t value_len;

    if (equals == NULL || equals == item || equals == item + len - 1) {
        return err_set(err, -EINVAL, "--rdzv-conf: \"%.*s\" is not KEY=VALUE",
                       (int)(len < 64 ? len : 64), item);
    }
    name_len = (size_t)(equals - item);
    while (name_len > 0 && item[name_len - 1] == ' ') {
        name_len--;
    }
    for (equals++; *equals == ' '; equals++) {
    }
    value_len = (size_t)(item + len - equals);
    if (value_len >= sizeof(value)) {
        return err_set(err, -EINVAL,
                       "--rdzv-conf: the value of %.*s is too "
                       "long",
                       (int)(name_len < 64 ? name_len : 64), item);
    }
    memcpy(value, equals, value_len);
    value[value_len] = '\0';
    key = key_find(item, name_len);
    if (key == NULL) {
        note_unknown(conf, item, name_len);
        return 0;
    }
    return take(key, value, conf, alive, err);
}

int rdzv_conf_parse(const char *text, struct rdzv_conf *conf_out,
                    struct err *err)
{
    struct rdzv_conf conf = { .is_host = RDZV_IS_HOST_UNSET };
    struct keep_alive alive = { .interval_ms = 0, .attempts = 0 };
    const char *cursor = text != NULL && text[0] != '\0' ? text : NULL;
    const char *item;
    size_t len;
    int rc = 0;

    while (rc == 0 && parse_list_next(&cursor, &item, &len)) {
        rc = take_item(item, len, &conf, &alive, err);
    }
    if (rc < 0) {
        return rc;
    }
    if (alive.interval_ms > 0 || alive.attempts > 0) {
        /* torchrun's defaults for the one that is not given. */
        conf.lease_ms = (alive.interval_ms > 0 ? alive.interval_ms : 5000) *
                        (uint64_t)(alive.attempts > 0 ? alive.attempts : 3);
    }
    *conf_out = conf;
    return 0;
}
