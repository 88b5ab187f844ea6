#include "common/store_session.h"

#include "common/store_serve.h"

#include <errno.h>
#include <inttypes.h>

void store_session_init(struct store_session *session, struct store *store,
                        struct buf *out, void (*wake)(void *arg), void *arg)
{
    *session = (struct store_session){
        .store = store,
        .out = out,
        .waiter = { .done = store_serve_wait_done },
        .watcher = { .changed = store_serve_key_changed },
        .wake = wake,
        .arg = arg,
    };
    session->waiter.arg = session;
    session->watcher.arg = session;
    store_parser_init(&session->parser, store_conf_of(store));
}

void store_session_destroy(struct store_session *session)
{
    store_wait_cancel(session->store, &session->waiter);
    store_watch_cancel(session->store, &session->watcher);
    store_parser_trim(&session->parser);
    buf_destroy(&session->in);
    store_release(session->store, session->charged);
    session->charged = 0;
}

bool store_session_is_held(const struct store_session *session)
{
    return session->out->len >= STORE_OUT_HIGH;
}

bool store_session_undecided(const struct store_session *session)
{
    return store_parser_undecided(&session->parser, session->in.len);
}

void store_session_settle(struct store_session *session)
{
    store_parser_settle(&session->parser);
}

/*
 * Handle the requests at the front of data; used_out is what they took. The
 * rest is the beginning of one that is not whole yet, or waits until replies
 * have been read.
 */
static int session_run(struct store_session *session, const uint8_t *data,
                       size_t len, size_t *used_out, struct err *err)
{
    struct store_parser *parser = &session->parser;
    struct store_request request;
    size_t used;
    int rc = 0;

    *used_out = 0;
    if (!session->have_dialect) {
        rc = store_dialect_detect(data, len, parser->conf->legacy,
                                  &parser->dialect);
        if (rc <= 0) {
            return rc < 0 ? err_set(err, rc, "this is no client of a store")
                          : 0;
        }
        session->have_dialect = true;
    }
    while (!store_session_is_held(session)) {
        rc = store_parser_next(parser, data + *used_out, len - *used_out,
                               &request, &used, err);
        if (rc <= 0) {
            return rc;
        }
        *used_out += used;
        rc = store_serve(session, &request, err);
        store_parser_trim(parser);
        if (rc == 0 && session->late_error < 0) {
            rc = err_sys(err, session->late_error, "its own change of a key");
        }
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* Have the store count what this session holds. */
static int settle_charge(struct store_session *session, struct err *err)
{
    size_t held = session->in.cap + store_parser_memory(&session->parser);

    if (held > session->charged &&
        !store_charge(session->store, held - session->charged)) {
        return err_set(err, -ENOSPC,
                       "a request: the store would need more than %" PRIu64
                       " bytes of memory (--store-max-memory)",
                       store_conf_of(session->store)->max_memory);
    }
    if (held < session->charged) {
        store_release(session->store, session->charged - held);
    }
    session->charged = held;
    return 0;
}

/* Keep what was not used. */
static int keep_rest(struct store_session *session, const uint8_t *data,
                     size_t len, struct err *err)
{
    int rc = buf_append(&session->in, data, len);

    return rc < 0 ? err_sys(err, rc, "a request") : settle_charge(session, err);
}

int store_session_feed(struct store_session *session, const uint8_t *data,
                       size_t len, struct err *err)
{
    size_t used = 0;
    int rc;

    if (session->in.len == 0) {
        rc = session_run(session, data, len, &used, err);
        return rc < 0 || used == len
                   ? rc
                   : keep_rest(session, data + used, len - used, err);
    }
    rc = keep_rest(session, data, len, err);
    if (rc == 0) {
        rc =
            session_run(session, session->in.data, session->in.len, &used, err);
    }
    if (rc < 0) {
        return rc;
    }
    buf_consume(&session->in, used);
    if (session->in.len == 0) {
        buf_destroy(&session->in); /* idle connections hold no buffer */
    }
    return settle_charge(session, err);
}
