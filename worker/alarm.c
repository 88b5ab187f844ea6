#include "worker/alarm.h"

#include "worker/fail.h"

#include <stdio.h>
#include <string.h>

#define ALARM_MAX 1100

static void key_name(const char *prefix, const char *name, char *key,
                     size_t size)
{
    (void)snprintf(key, size, "%s/%s", prefix, name);
}

/* "DOMAIN CODE sentence" */
static bool read_error(struct store_client *client, const char *key,
                       struct flaunch_error *error_out, uint64_t deadline_ms)
{
    struct buf value = { 0 };
    char text[ALARM_MAX];
    int domain;
    int code;
    int begin = 0;
    bool good;

    if (store_client_get(client, key, deadline_ms, &value, NULL) < 0) {
        return false;
    }
    (void)snprintf(text, sizeof(text), "%.*s", (int)value.len,
                   value.len > 0 ? (const char *)value.data : "");
    buf_destroy(&value);
    good = sscanf(text, "%2d %6d %n", &domain, &code, &begin) == 2 &&
           begin > 0 && domain > FLAUNCH_OK && domain <= FLAUNCH_GLOO &&
           code < 0;
    if (good) {
        (void)fail_set(error_out, (enum flaunch_domain)domain, code, "%.1000s",
                       text + begin);
    }
    return good;
}

void alarm_raise(struct store_client *client, const char *prefix,
                 struct flaunch_error *error, uint64_t deadline_ms)
{
    char text[ALARM_MAX];
    struct bytes value = { (const uint8_t *)text, 0 };
    char key[128];
    int64_t n;

    key_name(prefix, "failures", key, sizeof(key));
    if (store_client_add(client, key, 1, deadline_ms, &n, NULL) < 0) {
        return;
    }
    key_name(prefix, "failure", key, sizeof(key));
    if (n > 1) {
        (void)read_error(client, key, error, deadline_ms);
        return;
    }
    (void)snprintf(text, sizeof(text), "%d %d %s", (int)error->domain,
                   error->code, error->text);
    value.len = strlen(text);
    (void)store_client_set(client, key, value, deadline_ms, NULL);
}

bool alarm_heard(struct store_client *client, const char *prefix,
                 struct flaunch_error *error_out, uint64_t deadline_ms)
{
    bool raised = false;
    char key[128];

    key_name(prefix, "failure", key, sizeof(key));
    return store_client_check(client, key, deadline_ms, &raised, NULL) == 0 &&
           raised && read_error(client, key, error_out, deadline_ms);
}
