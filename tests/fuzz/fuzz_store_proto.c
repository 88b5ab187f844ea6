/*
 * Requests of every dialect: read whole and a byte at a time they are the same,
 * and no field lies outside the bytes.
 */
#include "common/store_proto.h"
#include "tests/fuzz/fuzz.h"

/* A sum over all requests read; rc_out is how it ended. */
static uint64_t parse(const uint8_t *data, size_t size,
                      enum store_dialect dialect, bool by_bytes, int *rc_out)
{
    const struct store_conf conf = STORE_CONF_DEFAULT;
    struct store_parser parser;
    struct store_request request;
    uint64_t sum = 0;
    size_t begin = 0;
    size_t end = by_bytes ? 0 : size;
    size_t used = 0;
    int rc = 0;

    store_parser_init(&parser, &conf);
    parser.dialect = dialect;
    while (rc >= 0) {
        struct err err;

        rc = store_parser_next(&parser, data + begin, end - begin, &request,
                               &used, &err);
        if (rc == 1) {
            size_t i;

            CHECK(used > 0 && used <= end - begin);
            sum = sum * 31 + (uint64_t)request.op + request.nonce +
                  (uint64_t)request.number + request.n_keys;
            for (i = 0; i < request.n_fields; i++) {
                struct bytes field = store_request_field(&request, i);

                CHECK(field.data >= data + begin &&
                      field.data + field.len <= data + begin + used);
                sum = sum * 31 + field.len;
            }
            begin += used;
            store_parser_trim(&parser);
        } else if (rc == 0) {
            if (store_parser_undecided(&parser, end - begin) && end == size) {
                store_parser_settle(&parser);
            } else if (end == size) {
                break;
            } else {
                end++;
            }
        } else {
            CHECK(strlen(err.text) > 0);
        }
    }
    CHECK(store_parser_memory(&parser) <= 32 * (size + 16));
    store_parser_trim(&parser);
    *rc_out = rc;
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum store_dialect dialect;
    int whole_rc;
    int bytes_rc;

    if (size == 0) {
        return 0;
    }
    dialect = (enum store_dialect)(data[0] % 4);
    CHECK(parse(data + 1, size - 1, dialect, false, &whole_rc) ==
          parse(data + 1, size - 1, dialect, true, &bytes_rc));
    CHECK(whole_rc == bytes_rc);
    return 0;
}
