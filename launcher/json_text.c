#include "launcher/json_text.h"

#include "common/buf.h"
#include "common/error_file.h"

json_t *json_text(const char *text)
{
    struct buf quoted = { 0 };
    json_t *value = NULL;

    if (error_file_put_text(&quoted, text) == 0) {
        value = json_loadb((const char *)quoted.data, quoted.len,
                           JSON_DECODE_ANY, NULL);
    }
    buf_destroy(&quoted);
    return value;
}
