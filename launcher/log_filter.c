#include "launcher/log_filter.h"

#include "common/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Append text up to the next single comma; returns what follows that. */
static const char *take_text(const char *at, struct buf *text)
{
    while (*at != '\0') {
        if (at[0] == ',') {
            if (at[1] != ',') {
                return at + 1;
            }
            at++;
        }
        if (buf_append_u8(text, (uint8_t)*at) < 0) {
            return NULL;
        }
        at++;
    }
    return NULL;
}

static int list_parse(struct log_filter *filter, const char *list)
{
    size_t max = strlen(list) + 1;

    filter->texts = calloc(max, sizeof(*filter->texts));
    if (filter->texts == NULL) {
        return -ENOMEM;
    }
    while (list != NULL && filter->n_texts < max) {
        list = take_text(list, &filter->texts[filter->n_texts++]);
    }
    return 0;
}

int log_filter_open(struct log_filter *filter, const char *list,
                    const char *path)
{
    int rc;

    *filter = (struct log_filter){ .fd = -1 };
    rc = list_parse(filter, list);
    if (rc == 0) {
        filter->fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
        rc = filter->fd < 0 ? -errno : 0;
    }
    if (rc < 0) {
        log_filter_close(filter);
    }
    return rc;
}

bool log_filter_matches(const struct log_filter *filter, const uint8_t *line,
                        size_t len)
{
    size_t i;

    for (i = 0; i < filter->n_texts; i++) {
        const struct buf *text = &filter->texts[i];

        if (text->len == 0 ||
            memmem(line, len, text->data, text->len) != NULL) {
            return true;
        }
    }
    return false;
}

void log_filter_write(struct log_filter *filter, const char *header,
                      size_t header_len, const uint8_t *data, size_t len)
{
    struct buf text = { 0 };
    size_t at = 0;
    int rc;

    while (at < len) {
        const uint8_t *nl = memchr(data + at, '\n', len - at);
        size_t end = nl != NULL ? (size_t)(nl + 1 - data) : len;

        if (log_filter_matches(filter, data + at, end - at) &&
            buf_reserve(&text, header_len + end - at) == 0) {
            (void)buf_append(&text, header, header_len);
            (void)buf_append(&text, data + at, end - at);
        }
        at = end;
    }
    rc = io_write_all(filter->fd, text.data, text.len);
    if (rc < 0) {
        filter->error = filter->error != 0 ? filter->error : -rc;
        filter->lost += text.len;
    }
    buf_destroy(&text);
}

void log_filter_close(struct log_filter *filter)
{
    size_t i;

    for (i = 0; i < filter->n_texts; i++) {
        buf_destroy(&filter->texts[i]);
    }
    free(filter->texts);
    if (filter->fd >= 0) {
        (void)close(filter->fd);
    }
    *filter = (struct log_filter){ .fd = -1 };
}
