#include "common/store_session.h"

#include <errno.h>
#include <string.h>

static void wait_done(struct store_waiter *waiter)
{
    struct store_session *session = waiter->arg;

    /*
     * Without memory for one byte the client would wait for ever; this
     * reserve was made when the wait began.
     */
    (void)buf_append_u8(&session->out, STORE_STOP_WAITING);
    session->wake(session->arg);
}

void store_session_init(struct store_session *session, struct store *store,
                        void (*wake)(void *arg), void *arg)
{
    *session = (struct store_session){
        .store = store,
        .waiter = { .done = wait_done },
        .wake = wake,
        .arg = arg,
    };
    session->waiter.arg = session;
}

void store_session_destroy(struct store_session *session)
{
    store_wait_cancel(session->store, &session->waiter);
    store_parser_destroy(&session->parser);
    buf_destroy(&session->in);
    buf_destroy(&session->out);
}

/* Append a value; a missing key answers as an empty one. */
static int reply_value(struct store_session *session, struct bytes key)
{
    struct bytes value = { 0 };

    (void)store_get(session->store, key, &value);
    if (value.len + 8 > STORE_OUT_MAX - session->out.len) {
        return -ENOBUFS;
    }
    return store_put_str(&session->out, value.data, value.len);
}

static int do_compare_set(struct store_session *session,
                          const struct store_request *request)
{
    struct bytes result;
    int rc = store_compare_set(session->store, store_request_field(request, 0),
                               store_request_field(request, 1),
                               store_request_field(request, 2), &result);

    if (rc < 0) {
        return rc;
    }
    return store_put_str(&session->out, result.data, result.len);
}

static int do_add(struct store_session *session,
                  const struct store_request *request)
{
    int64_t value;
    int rc = store_add(session->store, store_request_field(request, 0),
                       request->delta, &value);

    if (rc < 0) {
        return rc;
    }
    return buf_append_u64(&session->out, (uint64_t)value);
}

static int do_check(struct store_session *session,
                    const struct store_request *request)
{
    struct bytes unused;
    uint8_t code = STORE_READY;
    size_t i;

    for (i = 0; i < request->n_keys && code == STORE_READY; i++) {
        if (!store_get(session->store, store_request_field(request, i),
                       &unused)) {
            code = STORE_NOT_READY;
        }
    }
    return buf_append_u8(&session->out, code);
}

/* A new WAIT replaces one that is pending. */
static int do_wait(struct store_session *session,
                   const struct store_request *request)
{
    struct store_waiter *waiter = &session->waiter;
    size_t i;
    int rc;

    store_wait_cancel(session->store, waiter);
    rc = buf_reserve(&session->out, 1);
    for (i = 0; i < request->n_keys && rc == 0; i++) {
        rc =
            store_wait(session->store, waiter, store_request_field(request, i));
    }
    if (rc < 0 || waiter->n_missing > 0) {
        return rc;
    }
    return buf_append_u8(&session->out, STORE_STOP_WAITING);
}

static int do_multi_get(struct store_session *session,
                        const struct store_request *request)
{
    int rc = 0;
    size_t i;

    for (i = 0; i < request->n_keys && rc == 0; i++) {
        rc = reply_value(session, store_request_field(request, i));
    }
    return rc;
}

static int do_multi_set(struct store_session *session,
                        const struct store_request *request)
{
    int rc = 0;
    size_t i;

    for (i = 0; i < request->n_fields && rc == 0; i += 2) {
        rc = store_set(session->store, store_request_field(request, i),
                       store_request_field(request, i + 1));
    }
    return rc;
}

static int do_validate(struct store_session *session,
                       const struct store_request *request)
{
    if (session->validated || request->nonce != STORE_MAGIC) {
        return -EPROTO;
    }
    session->validated = true;
    return 0;
}

static int session_apply(struct store_session *session,
                         const struct store_request *request)
{
    struct buf *out = &session->out;

    switch (request->op) {
    case STORE_OP_VALIDATE:
        return do_validate(session, request);
    case STORE_OP_PING:
        return buf_append_u32(out, request->nonce);
    case STORE_OP_SET:
        return store_set(session->store, store_request_field(request, 0),
                         store_request_field(request, 1));
    case STORE_OP_APPEND:
        return store_append(session->store, store_request_field(request, 0),
                            store_request_field(request, 1));
    case STORE_OP_COMPARE_SET:
        return do_compare_set(session, request);
    case STORE_OP_GET:
        return reply_value(session, store_request_field(request, 0));
    case STORE_OP_ADD:
        return do_add(session, request);
    case STORE_OP_CHECK:
        return do_check(session, request);
    case STORE_OP_WAIT:
        return do_wait(session, request);
    case STORE_OP_CANCEL_WAIT:
        store_wait_cancel(session->store, &session->waiter);
        return buf_append_u8(out, STORE_WAIT_CANCELED);
    case STORE_OP_GETNUMKEYS:
        return buf_append_u64(out, store_n_keys(session->store));
    case STORE_OP_DELETE_KEY:
        return buf_append_u64(
            out, store_delete(session->store, store_request_field(request, 0)));
    case STORE_OP_MULTI_GET:
        return do_multi_get(session, request);
    case STORE_OP_MULTI_SET:
        return do_multi_set(session, request);
    case STORE_OP_NONE:
        break;
    }
    return -EPROTO;
}

/*
 * Handle the requests at the front of data; used_out is what they took. The
 * rest is the beginning of one that is not whole yet.
 */
static int session_run(struct store_session *session, const uint8_t *data,
                       size_t len, size_t *used_out)
{
    struct store_request request;
    size_t used;
    int rc = 0;

    *used_out = 0;
    if (!session->have_dialect) {
        rc = store_dialect_detect(data, len, &session->parser.dialect);
        if (rc <= 0) {
            return rc;
        }
        session->have_dialect = true;
    }
    for (;;) {
        rc = store_parser_next(&session->parser, data + *used_out,
                               len - *used_out, &request, &used);
        if (rc <= 0) {
            return rc;
        }
        *used_out += used;
        if (session->parser.dialect == STORE_DIALECT_A) {
            /*
             * This client has given up waiting: it has no CANCEL_WAIT, and
             * the late byte would be read as the next reply's first.
             */
            store_wait_cancel(session->store, &session->waiter);
        }
        rc = session_apply(session, &request);
        if (rc == 0 && session->out.len > STORE_OUT_MAX) {
            rc = -ENOBUFS;
        }
        if (rc < 0) {
            return rc;
        }
    }
}

int store_session_feed(struct store_session *session, const uint8_t *data,
                       size_t len)
{
    size_t used = 0;
    int rc;

    if (session->in.len == 0) {
        rc = session_run(session, data, len, &used);
        if (rc < 0) {
            return rc;
        }
        return buf_append(&session->in, data + used, len - used);
    }
    rc = buf_append(&session->in, data, len);
    if (rc == 0) {
        rc = session_run(session, session->in.data, session->in.len, &used);
    }
    if (rc < 0) {
        return rc;
    }
    buf_consume(&session->in, used);
    if (session->in.len == 0) {
        buf_destroy(&session->in); /* idle connections hold no buffer */
    }
    return 0;
}
