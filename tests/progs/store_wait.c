/*
 * Waits in the launcher's store: store_wait MS KEY ... A key that begins with
 * "+" is set first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "worker/store_client.h"

#define KEYS_MAX 16

int main(int argc, char **argv)
{
    const char *keys[KEYS_MAX];
    const char *port = getenv("MASTER_PORT");
    struct store_client client = { .fd = -1 };
    struct bytes value = { .data = (const uint8_t *)"v", .len = 1 };
    struct err err = { 0 };
    uint64_t deadline_ms;
    size_t n_keys = 0;
    int i;
    int rc;

    if (argc < 3 || argc > KEYS_MAX || port == NULL) {
        return 2;
    }
    deadline_ms = clock_deadline(60000);
    rc = store_client_connect(&client, "127.0.0.1",
                              (uint16_t)strtoul(port, NULL, 10), deadline_ms,
                              &err);
    for (i = 2; i < argc && rc == 0; i++) {
        const char *key = argv[i] + (argv[i][0] == '+');

        keys[n_keys++] = key;
        if (argv[i][0] == '+') {
            rc = store_client_set(&client, key, value, deadline_ms, &err);
        }
    }
    if (rc == 0) {
        deadline_ms = clock_deadline(strtoul(argv[1], NULL, 10));
        rc = store_client_wait_all(&client, keys, n_keys, deadline_ms, &err);
    }
    store_client_close(&client);
    if (rc < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
    }
    return rc < 0;
}
