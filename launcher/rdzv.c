#include "launcher/rdzv.h"

#include "common/log.h"
#include "common/net.h"
#include "launcher/port_holder.h"

#include <errno.h>

/* Where the configuration has it. */
static struct net_where where_of(const struct nodes *nodes)
{
    struct net_where where = { .scope = NET_LOOPBACK, .port = nodes->port };

    if (nodes->max > 1) {
        where.scope = nodes->bind[0] != '\0' ? NET_ADDRESS : NET_ALL;
        where.address = nodes->bind;
    }
    return where;
}

int rdzv_listen(const struct config *config, struct net_listeners *out,
                struct err *err)
{
    const struct nodes *nodes = &config->nodes;
    const struct net_where where = where_of(nodes);
    uint64_t n_clients = (uint64_t)nodes->max * (1 + config->n_workers);
    char holder[256];
    int rc = net_listeners_open(&where, net_listeners_for(n_clients), out, err);

    if (rc == -EADDRINUSE) {
        port_holder_describe(nodes->port, holder, sizeof(holder));
        return err_set(err, rc,
                       "port %u is taken by %s; choose another --master-port%s",
                       nodes->port, holder,
                       nodes->max > 1 ? ", the same on each node"
                                      : ", or none for a free one");
    }
    if (rc == -EACCES) {
        return err_set(err, rc, "port %u needs root: choose one above %u%s",
                       nodes->port, net_first_user_port() - 1,
                       nodes->max > 1 ? "" : ", or none for a free one");
    }
    return rc;
}

/* The address is one of this machine's: host, unless somebody here does. */
static bool host_here(void *arg)
{
    struct rdzv *rdzv = arg;
    struct err err = { 0 };
    int rc = rdzv_listen(rdzv->setup.config, &rdzv->setup.listeners, &err);

    if (rc == -EADDRINUSE) {
        return false;
    }
    if (rc < 0) {
        rdzv->setup.events->failed(err.text, rdzv->setup.arg);
        return true;
    }
    if (rdzv_host_create(&rdzv->setup, &rdzv->host) < 0) {
        rdzv->setup.events->failed("there is no memory to host the job",
                                   rdzv->setup.arg);
        return true;
    }
    rdzv_join_stop(rdzv->join);
    if (rdzv_host_open(rdzv->host, rdzv->loop) == 0) {
        rdzv_host_begin(rdzv->host);
    }
    return true;
}

int rdzv_init(struct rdzv *rdzv, const struct rdzv_setup *setup)
{
    bool ask = setup->config->nodes.hosting == NODES_HOST_BY_ADDRESS;

    *rdzv = (struct rdzv){ .setup = *setup };
    return setup->listeners.n > 0
               ? rdzv_host_create(&rdzv->setup, &rdzv->host)
               : rdzv_join_create(&rdzv->setup, ask ? host_here : NULL, rdzv,
                                  &rdzv->join);
}

void rdzv_begin(struct rdzv *rdzv)
{
    if (rdzv->host != NULL && rdzv->setup.config->nodes.max == 1) {
        rdzv_host_begin(rdzv->host);
    }
}

int rdzv_open(struct rdzv *rdzv, uv_loop_t *loop)
{
    int rc;

    rdzv->loop = loop;
    if (rdzv->host == NULL) {
        rdzv_join_open(rdzv->join, loop);
        return 0;
    }
    rc = rdzv_host_open(rdzv->host, loop);
    if (rc == 0 && rdzv->setup.config->nodes.max > 1) {
        rdzv_host_begin(rdzv->host);
    }
    return rc;
}

void rdzv_send(struct rdzv *rdzv, const struct agent_msg *msg)
{
    if (rdzv->host != NULL) {
        rdzv_host_send(rdzv->host, msg);
    } else {
        rdzv_join_send(rdzv->join, msg);
    }
}

void rdzv_say_waiting(struct rdzv *rdzv)
{
    if (rdzv->host != NULL) {
        rdzv_host_say_waiting(rdzv->host);
    }
}

void rdzv_lease_over(struct rdzv *rdzv)
{
    if (rdzv->host == NULL) {
        rdzv_join_lease_over(rdzv->join);
    }
}

void rdzv_stop(struct rdzv *rdzv)
{
    if (rdzv->host != NULL) {
        rdzv_host_stop(rdzv->host);
    }
    if (rdzv->join != NULL) {
        rdzv_join_stop(rdzv->join);
    }
}

void rdzv_destroy(struct rdzv *rdzv)
{
    rdzv_host_destroy(rdzv->host);
    rdzv_join_destroy(rdzv->join);
    net_listeners_close(&rdzv->setup.listeners);
}
