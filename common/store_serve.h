/*
 * What each request does, and what it answers; for store_session.
 */
#ifndef FLAUNCH_COMMON_STORE_SERVE_H
#define FLAUNCH_COMMON_STORE_SERVE_H

#include "common/store_session.h"

/*
 * Serve one request: the reply is appended to session->out. 0 or a negative
 * errno with a sentence, as store_session_feed.
 */
int store_serve(struct store_session *session,
                const struct store_request *request, struct err *err);

/* The session's waiter and watcher call these. */
void store_serve_wait_done(struct store_waiter *waiter);
void store_serve_key_changed(struct store_watcher *watcher,
                             enum store_change change, struct bytes key,
                             struct bytes before, struct bytes after);

#endif
