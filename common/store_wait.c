/*
 * Who waits for keys, and who watches them.
 */
#include "common/store_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static struct store_link *link_create(struct store *store,
                                      struct store_entry *entry, int *rc_out)
{
    struct store_link *link;

    if (!store_charge(store, LINK_COST)) {
        *rc_out = -ENOSPC;
        return NULL;
    }
    link = calloc(1, sizeof(*link));
    if (link == NULL) {
        store_release(store, LINK_COST);
        *rc_out = -ENOMEM;
        return NULL;
    }
    link->entry = entry;
    return link;
}

/* Take link off both lists and free it. */
static void link_destroy(struct store *store, struct store_link *link)
{
    LIST_REMOVE(link, at_owner);
    if (link->waiter != NULL) {
        TAILQ_REMOVE(&link->entry->waits, link, at_entry.waits);
    } else {
        LIST_REMOVE(link, at_entry.watches);
    }
    store_release(store, LINK_COST);
    free(link);
}

int store_entry_wait(struct store *store, struct store_entry *entry,
                     struct store_waiter *waiter)
{
    int rc = 0;
    struct store_link *link = link_create(store, entry, &rc);

    if (link == NULL) {
        store_entry_drop(store, entry);
        return rc;
    }
    link->waiter = waiter;
    TAILQ_INSERT_TAIL(&entry->waits, link, at_entry.waits);
    LIST_INSERT_HEAD(&waiter->links, link, at_owner);
    waiter->n_missing++;
    return 0;
}

void store_entry_wake_first(struct store *store, struct store_entry *entry)
{
    struct store_link *link = TAILQ_FIRST(&entry->waits);
    struct store_waiter *waiter;

    if (link == NULL) {
        return;
    }
    waiter = link->waiter;
    link_destroy(store, link);
    assert(TAILQ_FIRST(&entry->waits) != link); /* for the analyzer */
    if (--waiter->n_missing == 0) {
        waiter->done(waiter);
    }
}

void store_entry_wake(struct store *store, struct store_entry *entry)
{
    while (!TAILQ_EMPTY(&entry->waits)) {
        store_entry_wake_first(store, entry);
    }
}

bool store_waiter_key(const struct store_waiter *waiter, size_t number,
                      struct bytes *key_out)
{
    const struct store_link *link = LIST_FIRST(&waiter->links);

    while (link != NULL && number-- > 0) {
        link = LIST_NEXT(link, at_owner);
    }
    if (link == NULL) {
        return false;
    }
    *key_out = store_entry_key(link->entry);
    return true;
}

/* Destroy all links of one waiter or watcher, and entries that were there for
 * them only. */
static void links_cancel(struct store *store, struct store_links *links)
{
    struct store_link *link;

    while ((link = LIST_FIRST(links)) != NULL) {
        struct store_entry *entry = link->entry;

        link_destroy(store, link);
        assert(LIST_FIRST(links) != link); /* for the analyzer */
        store_entry_drop(store, entry);
    }
}

void store_wait_cancel(struct store *store, struct store_waiter *waiter)
{
    links_cancel(store, &waiter->links);
    waiter->n_missing = 0;
}

/* --- watches ------------------------------------------------------------ */

int store_watch(struct store *store, struct store_watcher *watcher,
                struct bytes key)
{
    struct store_entry *entry;
    struct store_link *link;
    int rc = store_entry_ensure(store, key, &entry);

    if (rc < 0) {
        return rc;
    }
    link = link_create(store, entry, &rc);
    if (link == NULL) {
        store_entry_drop(store, entry);
        return rc;
    }
    link->watcher = watcher;
    LIST_INSERT_HEAD(&entry->watches, link, at_entry.watches);
    LIST_INSERT_HEAD(&watcher->links, link, at_owner);
    return 0;
}

void store_watch_cancel(struct store *store, struct store_watcher *watcher)
{
    links_cancel(store, &watcher->links);
}

void store_entry_changed(const struct store_entry *entry,
                         enum store_change change, struct bytes before,
                         struct bytes after)
{
    struct store_link *link;

    LIST_FOREACH(link, &entry->watches, at_entry.watches)
    {
        link->watcher->changed(link->watcher, change, store_entry_key(entry),
                               before, after);
    }
}

void store_entry_forget(struct store_entry *entry)
{
    struct store_link *link;

    while ((link = TAILQ_FIRST(&entry->waits)) != NULL) {
        LIST_REMOVE(link, at_owner);
        TAILQ_REMOVE(&entry->waits, link, at_entry.waits);
        link->waiter->n_missing = 0;
        free(link);
    }
    while ((link = LIST_FIRST(&entry->watches)) != NULL) {
        LIST_REMOVE(link, at_owner);
        LIST_REMOVE(link, at_entry.watches);
        free(link);
    }
}
