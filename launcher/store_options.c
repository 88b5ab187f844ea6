#include "launcher/store_options.h"

#include "common/parse.h"

#include <errno.h>
#include <string.h>

/* Lengths on the wire are checked before anything is added to them; this is
 * far from where sums of them could wrap. */
#define ONE_STRING_MAX ((uint64_t)1 << 32)
#define MEMORY_MIN ((uint64_t)1024 * 1024)

static int resolve_count(const struct options *options, enum option_id id,
                         uint64_t max, uint64_t *n_out, struct err *err)
{
    const char *text = options->values[id].text;
    int64_t n;

    if (parse_int(text, 1, (int64_t)max, &n) < 0) {
        return err_set(err, -EINVAL, "--%s=%s: give a number from 1 to %llu",
                       option_table[id].name, text, (unsigned long long)max);
    }
    *n_out = (uint64_t)n;
    return 0;
}

static int resolve_size(const struct options *options, enum option_id id,
                        uint64_t min, uint64_t max, uint64_t *bytes_out,
                        struct err *err)
{
    const char *text = options->values[id].text;

    if (parse_size(text, min, max, bytes_out) < 0) {
        return err_set(err, -EINVAL,
                       "--%s=%s: give bytes, such as 4096, 64K, 8M or 1G, from "
                       "%llu to %llu",
                       option_table[id].name, text, (unsigned long long)min,
                       (unsigned long long)max);
    }
    return 0;
}

static int resolve_legacy(const struct options *options,
                          enum store_legacy *legacy_out, struct err *err)
{
    static const struct {
        const char *text;
        enum store_legacy legacy;
    } rows[] = {
        { "auto", STORE_LEGACY_AUTO },
        { "1.13", STORE_LEGACY_1_13 },
        { "2.1", STORE_LEGACY_2_1 },
    };
    const char *text = options->values[OPT_LEGACY_DIALECT].text;
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(text, rows[i].text) == 0) {
            *legacy_out = rows[i].legacy;
            return 0;
        }
    }
    return err_set(err, -EINVAL,
                   "--legacy-dialect=%s: give auto, 1.13 (for 1.9 to 2.0) or "
                   "2.1",
                   text);
}

int store_options_resolve(const struct options *options,
                          struct store_conf *conf_out, struct err *err)
{
    struct store_conf conf = STORE_CONF_DEFAULT;
    uint64_t n_connections = 0;
    uint64_t key_bytes = 0;
    uint64_t value_bytes = 0;
    int rc = resolve_legacy(options, &conf.legacy, err);

    if (rc == 0) {
        rc = resolve_count(options, OPT_STORE_MAX_CONNECTIONS, UINT32_MAX,
                           &n_connections, err);
    }
    if (rc == 0) {
        rc = resolve_count(options, OPT_STORE_MAX_KEYS, UINT32_MAX,
                           &conf.max_keys, err);
    }
    if (rc == 0) {
        rc = resolve_size(options, OPT_STORE_MAX_KEY_BYTES, 64, ONE_STRING_MAX,
                          &key_bytes, err);
    }
    if (rc == 0) {
        rc = resolve_size(options, OPT_STORE_MAX_VALUE_BYTES, 64,
                          ONE_STRING_MAX, &value_bytes, err);
    }
    if (rc == 0) {
        rc = resolve_size(options, OPT_STORE_MAX_MEMORY, MEMORY_MIN, INT64_MAX,
                          &conf.max_memory, err);
    }
    if (rc < 0) {
        return rc;
    }
    conf.max_connections = (uint32_t)n_connections;
    conf.max_key_bytes = (size_t)key_bytes;
    conf.max_value_bytes = (size_t)value_bytes;
    *conf_out = conf;
    return 0;
}
