/*
 * What comes over foreign channels: PMI's lines, HTTP answers, addresses,
 * records of a file, and Slurm's lists.
 */
#include "common/hostlist.h"
#include "tests/fuzz/fuzz.h"
#include "worker/file_record.h"
#include "worker/http_kv.h"
#include "worker/job_address.h"
#include "worker/pmi_wire.h"

static int count_name(const char *name, void *arg)
{
    CHECK(name[0] != '\0' && strlen(name) < HOSTLIST_NAME_MAX);
    return ++*(int *)arg > 1000;
}

static void try_address(const char *text)
{
    struct job_address address;
    struct job_address again;
    char out[2048];

    if (job_address_decode(text, &address) == 0) {
        CHECK(job_address_encode(&address, out, sizeof(out)) == 0);
        CHECK(job_address_decode(out, &again) == 0);
        CHECK(memcmp(&address, &again, sizeof(again)) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char value[HOSTLIST_NAME_MAX];
    struct bytes body;
    int64_t count;
    int local_rank;
    int local_world_size;
    int n_names = 0;
    int number;

    (void)pmi_field(text, "value", value, 16);
    (void)pmi_number(text, "size", &number);
    (void)pmi_answer(text, "get_result");
    if (pmi_mapping_read(text, 5, &local_rank, &local_world_size) == 0) {
        CHECK(local_rank >= 0 && local_rank < local_world_size);
    }
    if (http_kv_reply((struct bytes){ data, size }, true, &body) >= 0) {
        CHECK(body.data >= data && body.data + body.len <= data + size);
    }
    try_address(text);
    if (file_record_find((struct bytes){ data, size }, "/k", &body) == 0) {
        CHECK(body.len == 0 ||
              (body.data >= data && body.data + body.len <= data + size));
    }
    (void)hostlist_walk(text, count_name, &n_names);
    (void)hostlist_first(text, value);
    if (hostlist_count_at(text, 3, &count) == 0) {
        CHECK(count >= 0);
    }
    free(text);
    return 0;
}
