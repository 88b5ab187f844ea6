#include "launcher/store_only.h"

#include "common/env_names.h"
#include "common/log.h"
#include "common/parse.h"
#include "common/store_host.h"
#include "launcher/exit_status.h"
#include "launcher/fds.h"
#include "launcher/port_holder.h"
#include "launcher/store_options.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The first descriptor that a parent passes on, as sd_listen_fds(3) says. */
#define LISTEN_FDS_START 3
/* Clients to make ready for, where no limit is given. */
#define CLIENTS_USUAL 1000
#define FDS_OF_OURS 64

static void complain(const char *text, void *arg)
{
    (void)arg;
    log_line(LOG_WARN, "%s", text);
}

/* --- sockets that the parent left -------------------------------------------
 */

/* How many there are, as the environment says. */
static int64_t inherited_count(void)
{
    const char *pid_text = getenv(ENV_LISTEN_PID);
    const char *n_text = getenv(ENV_LISTEN_FDS);
    int64_t pid;
    int64_t n;

    if (pid_text == NULL || n_text == NULL ||
        parse_int(pid_text, 1, INT32_MAX, &pid) < 0 || pid != getpid() ||
        parse_int(n_text, 1, INT32_MAX, &n) < 0) {
        return 0;
    }
    return n;
}

/* One of them: its port, or a negative errno. One that is bound only is made
 * to listen. */
static int inherited_take(int fd)
{
    struct sockaddr_storage name = { .ss_family = AF_UNSPEC };
    socklen_t len = sizeof(name);
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || getsockname(fd, (struct sockaddr *)&name, &len) < 0) {
        return -errno;
    }
    if (name.ss_family != AF_INET && name.ss_family != AF_INET6) {
        return -EAFNOSUPPORT;
    }
    if (listen(fd, SOMAXCONN) < 0 ||
        fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        return -errno;
    }
    return net_port_of((struct sockaddr *)&name);
}

static int inherited_open(int64_t n, struct net_listeners *out, struct err *err)
{
    struct net_listeners listeners = { 0 };

    if (n > NET_LISTENERS_MAX) {
        return err_set(err, -EINVAL, "LISTEN_FDS=%lld: at most %d sockets",
                       (long long)n, NET_LISTENERS_MAX);
    }
    while ((int64_t)listeners.n < n) {
        int fd = LISTEN_FDS_START + (int)listeners.n;
        int port = inherited_take(fd);

        if (port < 0) {
            return err_sys(err, port,
                           "LISTEN_FDS: descriptor %d is no socket "
                           "to listen on",
                           fd);
        }
        listeners.port = (uint16_t)port;
        listeners.fds[listeners.n++] = fd;
    }
    *out = listeners;
    return 0;
}

/* --- sockets of our own
 * ------------------------------------------------------- */

static int resolve_where(const struct options *options, struct net_where *out,
                         struct err *err)
{
    const char *bind_text = options->values[OPT_BIND].text;
    const char *port_text = options->values[OPT_MASTER_PORT].text;
    int64_t port = 0;

    if (port_text != NULL && parse_int(port_text, 0, UINT16_MAX, &port) < 0) {
        return err_set(err, -EINVAL,
                       "--master-port=%s: give a port, or 0 for a free one",
                       port_text);
    }
    *out = (struct net_where){
        .scope = bind_text[0] != '\0' ? NET_ADDRESS : NET_LOOPBACK,
        .address = bind_text,
        .port = (uint16_t)port,
    };
    return 0;
}

static int own_open(const struct net_where *where, uint64_t n_clients,
                    struct net_listeners *out, struct err *err)
{
    char holder[256];
    int rc = net_listeners_open(where, net_listeners_for(n_clients), out, err);

    if (rc == -EADDRINUSE) {
        port_holder_describe(where->port, holder, sizeof(holder));
        return err_set(err, rc,
                       "port %u is taken by %s; choose another, or "
                       "none for a free one",
                       where->port, holder);
    }
    return rc;
}

/* --- the run
 * -------------------------------------------------------------------- */

/* What clients on this machine, or on others, can connect to. */
static void print_address(const struct net_listeners *listeners,
                          const char *hostname)
{
    struct sockaddr_storage name = { .ss_family = AF_UNSPEC };
    socklen_t len = sizeof(name);
    char host[64];

    (void)getsockname(listeners->fds[0], (struct sockaddr *)&name, &len);
    net_address_text((struct sockaddr *)&name, host, sizeof(host));
    if (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0) {
        (void)printf("%s:%u\n", hostname, listeners->port);
    } else {
        (void)printf(strchr(host, ':') != NULL ? "[%s]:%u\n" : "%s:%u\n", host,
                     listeners->port);
    }
}

static int serve(const struct store_setup *setup, const char *hostname,
                 struct err *err)
{
    struct store_host *host;
    sigset_t ends;
    int signo;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGINT);
    (void)sigaddset(&ends, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &ends, NULL);
    if (store_host_start(setup, &host, err) < 0) {
        return EXIT_FLAUNCH;
    }
    print_address(&setup->listeners, hostname);
    if (fflush(stdout) != 0) {
        store_host_stop(host);
        (void)err_sys(err, -errno, "cannot write to stdout");
        return EXIT_FLAUNCH;
    }
    (void)sigwait(&ends, &signo);
    store_host_stop(host);
    return 0;
}

int store_only_run(const struct options *options, const char *hostname,
                   struct err *err)
{
    bool told =
        options->values[OPT_STORE_MAX_CONNECTIONS].source != FROM_DEFAULT;
    struct store_setup setup = { .complain = complain };
    struct net_where where = { .scope = NET_LOOPBACK };
    int64_t n_inherited = inherited_count();
    uint64_t n_clients;
    int rc;

    if (options->program[0] != NULL) {
        (void)err_set(err, -EINVAL, "--store-only starts no program: %s",
                      options->program[0]);
        return EXIT_USAGE;
    }
    if (options_flag(options, OPT_DRY_RUN) ||
        options_flag(options, OPT_EXPLAIN)) {
        (void)err_set(err, -EINVAL,
                      "--store-only excludes --dry-run and --explain");
        return EXIT_USAGE;
    }
    if (store_options_resolve(options, &setup.conf, err) < 0 ||
        resolve_where(options, &where, err) < 0) {
        return EXIT_USAGE;
    }
    n_clients = told ? setup.conf.max_connections : CLIENTS_USUAL;
    rc = fds_raise_limit(FDS_OF_OURS + n_clients, err);
    if (rc == 0) {
        rc = n_inherited > 0
                 ? inherited_open(n_inherited, &setup.listeners, err)
                 : own_open(&where, n_clients, &setup.listeners, err);
    }
    if (rc < 0) {
        return rc == -EINVAL ? EXIT_USAGE : EXIT_FLAUNCH;
    }
    return serve(&setup, hostname, err);
}
