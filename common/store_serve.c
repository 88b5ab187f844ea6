#include "common/store_serve.h"

#include <errno.h>
#include <inttypes.h>

/* Room for a reply of len bytes: 0, -ENOBUFS or -ENOMEM. */
static int reply_reserve(struct store_session *session, size_t len)
{
    if (session->out->len > STORE_OUT_MAX ||
        len > STORE_OUT_MAX - session->out->len) {
        return -ENOBUFS;
    }
    return buf_reserve(session->out, len);
}

void store_serve_wait_done(struct store_waiter *waiter)
{
    struct store_session *session = waiter->arg;

    /* A client that gets no byte would wait for ever: better no connection. */
    if (buf_append_u8(session->out, STORE_STOP_WAITING) < 0) {
        session->late_error = -ENOMEM;
    }
    session->wake(session->arg);
}

void store_serve_key_changed(struct store_watcher *watcher,
                             enum store_change change, struct bytes key,
                             struct bytes before, struct bytes after)
{
    struct store_session *session = watcher->arg;
    int rc;

    if (session->late_error != 0) {
        return;
    }
    rc = reply_reserve(session, 1 + 3 * 8 + key.len + before.len + after.len);
    if (rc < 0) {
        session->late_error = rc;
    } else {
        (void)buf_append_u8(session->out, (uint8_t)change);
        (void)store_put_str(session->out, key.data, key.len);
        (void)store_put_str(session->out, before.data, before.len);
        (void)store_put_str(session->out, after.data, after.len);
    }
    session->wake(session->arg);
}

static int reply_str(struct store_session *session, struct bytes text)
{
    int rc = reply_reserve(session, 8 + text.len);

    return rc < 0 ? rc : store_put_str(session->out, text.data, text.len);
}

/* Append a value; a missing key answers as an empty one. */
static int reply_value(struct store_session *session, struct bytes key)
{
    struct bytes value = { 0 };

    (void)store_get(session->store, key, &value);
    return reply_str(session, value);
}

static int do_compare_set(struct store_session *session,
                          const struct store_request *request)
{
    struct bytes result;
    int rc = store_compare_set(session->store, store_request_field(request, 0),
                               store_request_field(request, 1),
                               store_request_field(request, 2), &result);

    return rc < 0 ? rc : reply_str(session, result);
}

static int do_add(struct store_session *session,
                  const struct store_request *request)
{
    int64_t value;
    int rc = store_add(session->store, store_request_field(request, 0),
                       request->number, &value);

    return rc < 0 ? rc : buf_append_u64(session->out, (uint64_t)value);
}

static int do_check(struct store_session *session,
                    const struct store_request *request)
{
    uint8_t code = STORE_READY;
    size_t i;

    for (i = 0; i < request->n_keys && code == STORE_READY; i++) {
        if (!store_is_ready(session->store, store_request_field(request, i))) {
            code = STORE_NOT_READY;
        }
    }
    return buf_append_u8(session->out, code);
}

/* A new WAIT replaces one that is pending. */
static int do_wait(struct store_session *session,
                   const struct store_request *request)
{
    struct store_waiter *waiter = &session->waiter;
    size_t i;
    int rc = 0;

    store_wait_cancel(session->store, waiter);
    for (i = 0; i < request->n_keys && rc == 0; i++) {
        rc =
            store_wait(session->store, waiter, store_request_field(request, i));
    }
    if (rc < 0 || waiter->n_missing > 0) {
        return rc;
    }
    return buf_append_u8(session->out, STORE_STOP_WAITING);
}

/* The arrivals before this one hear of the end first, also on the same
 * connection; then what this one still waits for is replaced. */
static int do_barrier(struct store_session *session,
                      const struct store_request *request)
{
    bool complete;
    int rc = store_barrier(session->store, &session->waiter,
                           store_request_field(request, 0), request->number,
                           &complete);

    if (rc < 0 || !complete) {
        return rc;
    }
    store_wait_cancel(session->store, &session->waiter);
    return buf_append_u8(session->out, STORE_STOP_WAITING);
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

static int do_queue_pop(struct store_session *session, struct bytes key)
{
    struct bytes value;
    size_t n = store_queue_front(session->store, key, &value);
    int rc = buf_append_u64(session->out, n);

    if (n == 0 || rc < 0) {
        return rc;
    }
    rc = reply_str(session, value);
    if (rc == 0) {
        store_queue_drop(session->store, key);
    }
    return rc;
}

static int do_list_keys(struct store_session *session)
{
    const struct store_entry *at = NULL;
    struct bytes key;
    int rc = buf_append_u64(session->out, store_n_keys(session->store));

    while (rc == 0 && (at = store_next_key(session->store, at, &key)) != NULL) {
        rc = reply_str(session, key);
    }
    return rc;
}

static int do_watch_key(struct store_session *session, struct bytes key)
{
    int rc = store_watch(session->store, &session->watcher, key);

    return rc < 0 ? rc
                  : buf_append_u8(session->out, STORE_KEY_CALLBACK_REGISTERED);
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
    struct store *store = session->store;
    struct buf *out = session->out;
    struct bytes key = { 0 };
    struct bytes value = { 0 };

    if (request->n_fields > 0) {
        key = store_request_field(request, 0);
    }
    if (request->n_fields > 1) {
        value = store_request_field(request, 1);
    }
    switch (request->op) {
    case STORE_OP_VALIDATE:
        return do_validate(session, request);
    case STORE_OP_PING:
        return buf_append_u32(out, request->nonce);
    case STORE_OP_SET:
        return store_set(store, key, value);
    case STORE_OP_APPEND:
        return store_append(store, key, value);
    case STORE_OP_COMPARE_SET:
        return do_compare_set(session, request);
    case STORE_OP_GET:
        return reply_value(session, key);
    case STORE_OP_ADD:
        return do_add(session, request);
    case STORE_OP_CHECK:
        return do_check(session, request);
    case STORE_OP_WAIT:
        return do_wait(session, request);
    case STORE_OP_BARRIER:
        return do_barrier(session, request);
    case STORE_OP_CANCEL_WAIT:
        store_wait_cancel(store, &session->waiter);
        return buf_append_u8(out, STORE_WAIT_CANCELED);
    case STORE_OP_GETNUMKEYS:
        return buf_append_u64(out, store_n_keys(store));
    case STORE_OP_LIST_KEYS:
        return do_list_keys(session);
    case STORE_OP_DELETE_KEY:
        return buf_append_u64(out, store_delete(store, key));
    case STORE_OP_WATCH_KEY:
        return do_watch_key(session, key);
    case STORE_OP_MULTI_GET:
        return do_multi_get(session, request);
    case STORE_OP_MULTI_SET:
        return do_multi_set(session, request);
    case STORE_OP_QUEUE_PUSH:
        return store_queue_push(store, key, value);
    case STORE_OP_QUEUE_POP:
        return do_queue_pop(session, key);
    case STORE_OP_QUEUE_LEN:
        return buf_append_u64(out, store_queue_len(store, key));
    case STORE_OP_NONE:
    case STORE_OP_DELETE_OR_APPEND:
        break; /* no request that the parser gives */
    }
    return -EPROTO;
}

/* Why a request ends the session. */
static int say_why(const struct store_session *session,
                   const struct store_request *request, int rc, struct err *err)
{
    const struct store_conf *conf = store_conf_of(session->store);
    const char *name = store_op_name(request->op);

    switch (rc) {
    case -EPROTO:
        return err_set(err, rc, "%s a second time, or with a wrong number",
                       name);
    case -EINVAL:
    case -ERANGE:
        return err_set(err, rc, "%s on a value that is no number of 64 bits",
                       name);
    case -EDQUOT:
        return err_set(err, rc,
                       "%s: %" PRIu64 " keys are there already, the "
                       "limit (--store-max-keys)",
                       name, conf->max_keys);
    case -ENOSPC:
        return err_set(err, rc,
                       "%s: the store would need more than %" PRIu64
                       " bytes of memory (--store-max-memory)",
                       name, conf->max_memory);
    case -ENOBUFS:
        return err_set(err, rc, "%s: more than %zu bytes of replies are unread",
                       name, STORE_OUT_MAX);
    default:
        return err_sys(err, rc, "%s", name);
    }
}

int store_serve(struct store_session *session,
                const struct store_request *request, struct err *err)
{
    int rc;

    if (session->parser.dialect != STORE_DIALECT_D) {
        /*
         * A client of dialect A that has given up waiting: it has no
         * CANCEL_WAIT, and the late byte would be read as the next reply's
         * first. One of C has cancelled already.
         */
        store_wait_cancel(session->store, &session->waiter);
    }
    rc = session_apply(session, request);
    return rc < 0 ? say_why(session, request, rc, err) : 0;
}
