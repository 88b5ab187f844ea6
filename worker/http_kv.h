/*
 * Requests to Horovod's HTTP key-value store, and its answers; pure. One
 * connection carries one request.
 * Source: the store of Horovod 0.28.1, as it answers.
 */
#ifndef FLAUNCH_WORKER_HTTP_KV_H
#define FLAUNCH_WORKER_HTTP_KV_H

#include "common/buf.h"

#include <stdbool.h>

/* Longer answers are refused. */
#define HTTP_KV_REPLY_MAX 65536

/* "PUT /scope/key" with a value: appended to out; 0 or -ENOMEM. */
int http_kv_put(struct buf *out, const char *scope, const char *key,
                struct bytes value);

/* "GET /scope/key" */
int http_kv_get(struct buf *out, const char *scope, const char *key);

/*
 * Read an answer, of which all that came up to its end (or the connection's)
 * is in data. Returns the status, such as 200 or 404, with body_out inside
 * data; -EAGAIN where more must come, -EPROTO.
 */
int http_kv_reply(struct bytes data, bool ended, struct bytes *body_out);

#endif
