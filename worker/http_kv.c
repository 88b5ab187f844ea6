#include "worker/http_kv.h"

#include "common/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int request(struct buf *out, const char *verb, const char *scope,
                   const char *key, struct bytes body)
{
    char head[512];
    int len = snprintf(head, sizeof(head),
                       "%s /%s/%s HTTP/1.1\r\nContent-Length: %zu\r\n\r\n",
                       verb, scope, key, body.len);
    int rc;

    if (len < 0 || (size_t)len >= sizeof(head)) {
        return -EMSGSIZE;
    }
    rc = buf_append(out, head, (size_t)len);
    return rc == 0 && body.len > 0 ? buf_append(out, body.data, body.len) : rc;
}

int http_kv_put(struct buf *out, const char *scope, const char *key,
                struct bytes value)
{
    return request(out, "PUT", scope, key, value);
}

int http_kv_get(struct buf *out, const char *scope, const char *key)
{
    return request(out, "GET", scope, key, (struct bytes){ NULL, 0 });
}

/* The status of "HTTP/1.0 200 OK": 100 to 999, or -EPROTO. */
static int read_status(const char *head)
{
    int status = 0;

    if (strncmp(head, "HTTP/1.", 7) != 0 || strlen(head) < 12 ||
        head[8] != ' ' || sscanf(head + 9, "%3d", &status) != 1 ||
        status < 100) {
        return -EPROTO;
    }
    return status;
}

/* Content-Length of a head: the number, -1 where it is not there, -2 where it
 * is none. */
static int64_t read_length(const char *head)
{
    static const char name[] = "content-length:";
    const char *line = head;
    char text[24];
    int64_t length;
    size_t len;

    while ((line = strstr(line, "\r\n")) != NULL) {
        line += 2;
        if (strncasecmp(line, name, sizeof(name) - 1) != 0) {
            continue;
        }
        line += sizeof(name) - 1;
        line += strspn(line, " ");
        len = strcspn(line, "\r ");
        (void)snprintf(text, sizeof(text), "%.*s", (int)(len < 23 ? len : 23),
                       line);
        return parse_int(text, 0, HTTP_KV_REPLY_MAX, &length) == 0 ? length
                                                                   : -2;
    }
    return -1;
}

int http_kv_reply(struct bytes data, bool ended, struct bytes *body_out)
{
    char head[1024];
    const uint8_t *end;
    int64_t length;
    size_t head_len;
    int status;

    end = data.len >= 4 ? memmem(data.data, data.len, "\r\n\r\n", 4) : NULL;
    if (end == NULL) {
        return ended || data.len >= sizeof(head) ? -EPROTO : -EAGAIN;
    }
    head_len = (size_t)(end - data.data) + 2;
    if (head_len >= sizeof(head) || memchr(data.data, '\0', head_len) != NULL) {
        return -EPROTO;
    }
    memcpy(head, data.data, head_len);
    head[head_len] = '\0';
    status = read_status(head);
    length = read_length(head);
    if (status < 0 || length == -2) {
        return -EPROTO;
    }
    *body_out = (struct bytes){ end + 4, data.len - head_len - 2 };
    if (length < 0) {
        return ended ? status : -EAGAIN;
    }
    if (body_out->len < (size_t)length) {
        return ended ? -EPROTO : -EAGAIN;
    }
    body_out->len = (size_t)length;
    return status;
}
