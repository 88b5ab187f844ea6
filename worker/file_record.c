#include "worker/file_record.h"

#include <errno.h>
#include <string.h>

static bool is_text(struct bytes bytes, const char *text)
{
    return bytes.len == strlen(text) &&
           (bytes.len == 0 || memcmp(bytes.data, text, bytes.len) == 0);
}

int file_record_find(struct bytes content, const char *key,
                     struct bytes *value_out)
{
    struct reader reader = { .data = content.data, .len = content.len };
    int rc = -ENOENT;

    while (reader.pos < reader.len) {
        struct bytes name = reader_bytes(&reader, reader_u32(&reader));
        struct bytes value = reader_bytes(&reader, reader_u32(&reader));

        if (reader.bad) {
            return -EPROTO;
        }
        if (is_text(name, key)) {
            *value_out = value;
            rc = 0;
        } else if (name.len > 0 && name.data[0] == '-' &&
                   is_text((struct bytes){ name.data + 1, name.len - 1 },
                           key)) {
            rc = -ENOENT;
        }
    }
    return rc;
}

static int append_text(struct buf *out, const char *text)
{
    int rc = buf_append_u32(out, (uint32_t)strlen(text));

    return rc == 0 ? buf_append(out, text, strlen(text)) : rc;
}

int file_record_append(struct buf *out, const char *key, const char *value)
{
    int rc = append_text(out, key);

    return rc == 0 ? append_text(out, value) : rc;
}
