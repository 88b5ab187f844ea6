/*
 * Numbers, seconds, lists, hosts, and lines of /proc.
 */
#include "common/parse.h"
#include "launcher/gpu_count.h"
#include "launcher/proc_table.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    const char *cursor = text;
    const char *item;
    struct proc proc;
    char host[64];
    uint16_t port;
    int64_t number;
    uint64_t ms;
    size_t len;

    if (parse_int(text, -5, 70000, &number) == 0) {
        CHECK(number >= -5 && number <= 70000);
    }
    (void)parse_seconds(text, &ms);
    while (parse_list_next(&cursor, &item, &len)) {
        CHECK(item >= text && item + len <= text + size);
    }
    if (parse_host_port(text, host, sizeof(host), &port) == 0) {
        CHECK(port > 0 && host[0] != '\0');
    }
    (void)gpu_count("/nonexistent", text);
    if (proc_stat_parse(text, &proc) == 0) {
        CHECK(proc.pid > 0 && strlen(proc.name) < sizeof(proc.name));
    }
    free(text);
    return 0;
}
