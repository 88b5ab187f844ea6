/*
 * n - 1 simulated agents over real connections to a flaunch that hosts the job:
 * they join, say ENDED when they are started and BYE at the end. Prints the
 * time from the first connection to the last START, and to the last END. agents
 * HOST PORT N RUN_ID
 */
#include "common/clock.h"
#include "launcher/agent_proto.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

struct agent {
    int fd;
    struct buf in;
    bool ready;
    bool over;
};

static struct agent *agents;
static uint32_t n_agents;
static uint32_t n_started;
static uint32_t n_over;
static uint64_t n_messages;

static void die(const char *what)
{
    (void)fprintf(stderr, "agents: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void say(struct agent *agent, const struct agent_msg *msg)
{
    struct buf out = { 0 };
    ssize_t n;

    if (agent_msg_encode(&out, msg) < 0) {
        die("no memory");
    }
    n = send(agent->fd, out.data, out.len, MSG_NOSIGNAL);
    if (n != (ssize_t)out.len) {
        die("cannot send");
    }
    n_messages++;
    buf_destroy(&out);
}

static void come(struct agent *agent, uint32_t index, uint32_t n_nodes,
                 const char *run_id)
{
    char host[32];
    const struct agent_msg hello = { .type = AGENT_HELLO,
                                     .incarnation = index,
                                     .min_nodes = n_nodes,
                                     .max_nodes = n_nodes,
                                     .node_rank = index,
                                     .n_workers = 8,
                                     .host = host,
                                     .run_id = run_id,
                                     .role = "default" };

    (void)snprintf(host, sizeof(host), "node%u", index);
    say(agent, &hello);
}

static void take(struct agent *agent, uint32_t index,
                 const struct agent_msg *msg)
{
    const struct agent_msg ended = { .type = AGENT_ENDED,
                                     .incarnation = index,
                                     .round = msg->round };
    const struct agent_msg bye = { .type = AGENT_BYE, .incarnation = index };

    n_messages++;
    switch (msg->type) {
    case AGENT_START:
        n_started++;
        say(agent, &ended);
        break;
    case AGENT_END:
        say(agent, &bye);
        agent->over = true;
        n_over++;
        (void)close(agent->fd);
        break;
    case AGENT_REFUSED:
        (void)fprintf(stderr, "agents: refused: %s\n", msg->text);
        exit(1);
    default:
        break;
    }
}

static void hear(struct agent *agent, uint32_t index)
{
    uint8_t data[4096];
    ssize_t n = recv(agent->fd, data, sizeof(data), 0);
    struct reader reader;
    struct agent_msg msg;
    int rc = 0;

    if (n <= 0 || buf_append(&agent->in, data, (size_t)n) < 0) {
        die("lost the host node");
    }
    if (!agent->ready) {
        if (agent->in.len < AGENT_PREFACE_LEN) {
            return;
        }
        buf_consume(&agent->in, AGENT_PREFACE_LEN);
        agent->ready = true;
    }
    reader = (struct reader){ .data = agent->in.data, .len = agent->in.len };
    while (!agent->over && (rc = agent_msg_decode(&reader, &msg)) > 0) {
        take(agent, index, &msg);
    }
    if (rc < 0) {
        die("it said what no flaunch says");
    }
    buf_consume(&agent->in, reader.pos);
}

static void connect_one(int epoll, struct agent *agent, uint32_t index,
                        const struct sockaddr_in *address, const char *run_id)
{
    struct epoll_event event = { .events = EPOLLIN, .data.u32 = index };
    struct buf preface = { 0 };

    agent->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (agent->fd < 0 || connect(agent->fd, (const struct sockaddr *)address,
                                 sizeof(*address)) < 0) {
        die("cannot connect");
    }
    if (agent_preface_encode(&preface) < 0 ||
        send(agent->fd, preface.data, preface.len, MSG_NOSIGNAL) !=
            (ssize_t)preface.len) {
        die("cannot send");
    }
    buf_destroy(&preface);
    come(agent, index, n_agents + 1, run_id);
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, agent->fd, &event) < 0) {
        die("cannot watch");
    }
}

static void hear_all(int epoll, uint64_t deadline_ms, const uint32_t *count)
{
    struct epoll_event events[256];

    while (*count < n_agents) {
        int n = epoll_wait(epoll, events, 256, clock_poll_ms(deadline_ms));
        int i;

        if (n <= 0) {
            die("nothing is heard any more");
        }
        for (i = 0; i < n; i++) {
            uint32_t index = events[i].data.u32;

            hear(&agents[index - 1], index);
        }
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    struct rlimit files;
    uint64_t begin_ns;
    uint64_t start_ns;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    uint32_t i;

    if (argc != 5 || inet_pton(AF_INET, argv[1], &address.sin_addr) != 1) {
        (void)fprintf(stderr, "agents ADDRESS PORT N RUN_ID\n");
        return 2;
    }
    address.sin_port = htons((uint16_t)atoi(argv[2]));
    n_agents = (uint32_t)atoi(argv[3]) - 1;
    agents = calloc(n_agents, sizeof(*agents));
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || agents == NULL) {
        die("cannot begin");
    }
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    begin_ns = clock_ns();
    for (i = 0; i < n_agents; i++) {
        connect_one(epoll, &agents[i], i + 1, &address, argv[4]);
    }
    hear_all(epoll, clock_deadline(120000), &n_started);
    start_ns = clock_ns();
    hear_all(epoll, clock_deadline(120000), &n_over);
    (void)printf("%.1f %.1f %.1f\n", (double)(start_ns - begin_ns) / 1e6,
                 (double)(clock_ns() - start_ns) / 1e6,
                 (double)n_messages / n_agents);
    return 0;
}
