/*
 * The coordinator fed with whatever agents may say, connect, vanish, and time
 * passing: no rank is held twice, and nobody is told to start while he runs.
 */
#include "launcher/coordinator.h"
#include "tests/fuzz/fuzz.h"

#define ACTORS 8

struct actor {
    bool connected;
    bool running;
    uint32_t id;
    uint64_t round;
};

struct world {
    struct coordinator coordinator;
    struct actor actors[ACTORS];
    uint64_t now_ms;
    uint32_t min;
    uint32_t max;
};

static struct actor *actor_of(struct world *world, uint32_t id)
{
    unsigned i;

    for (i = 0; i < ACTORS; i++) {
        if (world->actors[i].connected && world->actors[i].id == id) {
            return &world->actors[i];
        }
    }
    return NULL;
}

static void check_ranks(const struct world *world)
{
    bool taken[ACTORS] = { false };
    unsigned i;

    for (i = 0; i < ACTORS; i++) {
        const struct actor *actor = &world->actors[i];
        uint32_t rank;

        if (actor->connected && actor->running) {
            CHECK(actor->round == world->coordinator.round);
            rank = world->coordinator.members.rows[actor->id].group_rank;
            CHECK(rank < ACTORS && !taken[rank]);
            taken[rank] = true;
        }
    }
}

static void drain(struct world *world)
{
    const struct agent_msg *msg;
    uint32_t id;

    while (coordinator_next(&world->coordinator, &id, &msg)) {
        struct actor *actor = actor_of(world, id);
        struct buf out = { 0 };

        CHECK(actor != NULL);
        CHECK(agent_msg_encode(&out, msg) == 0);
        CHECK(out.len <= AGENT_FRAME_MAX);
        buf_destroy(&out);
        if (msg->type == AGENT_START) {
            CHECK(!actor->running && msg->round > actor->round);
            actor->running = true;
            actor->round = msg->round;
        } else if (msg->type == AGENT_END) {
            CHECK(!actor->running);
        } else if (msg->type == AGENT_REFUSED) {
            coordinator_lost(&world->coordinator, id, "refused", world->now_ms);
            actor->connected = false;
            actor->running = false;
        }
    }
    check_ranks(world);
}

static void leave(struct world *world, struct actor *actor)
{
    coordinator_lost(&world->coordinator, actor->id, "gone", world->now_ms);
    actor->connected = actor->id == MEMBER_LOCAL;
    actor->running = actor->running && actor->connected;
}

static void say(struct world *world, struct actor *actor, uint8_t type,
                uint8_t detail)
{
    static const char *const texts[] = { "", "a", "job", "SIGTERM" };
    struct agent_msg msg = {
        .type = (enum agent_msg_type)(1 + type % AGENT_END),
        .incarnation = detail & 1 ? 1 : 0,
        .round = detail & 2 ? world->coordinator.round : detail,
        .min_nodes = world->min,
        .max_nodes = world->max,
        .node_rank = detail & 4 ? AGENT_NO_RANK : (uint32_t)detail % 5,
        .n_workers = 1 + detail % 3,
        .code = detail & 8 ? 0 : detail,
        .signo = detail & 16 ? 15 : 0,
        .at_once = detail & 32,
        .for_good = detail & 64,
        .host = texts[detail % 4],
        .run_id = "job",
        .role = texts[detail / 4 % 4],
        .address = "",
        .text = texts[detail / 16 % 4],
        .report = texts[detail / 64 % 4]
    };
    bool ended = msg.type == AGENT_ENDED && msg.incarnation == 1 &&
                 msg.round == world->coordinator.round;
    bool bye = msg.type == AGENT_BYE;

    if (msg.type == AGENT_HELLO) {
        msg.incarnation = 1;
    }
    if (ended) {
        actor->running = false;
    }
    if (bye || coordinator_take(&world->coordinator, actor->id, &msg,
                                world->now_ms) < 0) {
        leave(world, actor);
    }
}

static void step(struct world *world, const uint8_t *data)
{
    struct actor *actor = &world->actors[data[0] % ACTORS];
    int64_t id;

    switch (data[1] % 8) {
    case 0:
        if (!actor->connected) {
            id = coordinator_connected(&world->coordinator, "10.0.0.1",
                                       world->now_ms);
            CHECK(id >= 0);
            *actor = (struct actor){ .connected = true, .id = (uint32_t)id };
        } else {
            leave(world, actor);
        }
        break;
    case 1:
        world->now_ms += (uint64_t)data[2] * 50;
        (void)coordinator_tick(&world->coordinator, world->now_ms);
        break;
    case 2:
        if (actor->connected) {
            say(world, actor, AGENT_HELLO - 1, data[2]);
        }
        break;
    default:
        if (actor->connected) {
            say(world, actor, data[1] / 8, data[2]);
        }
        break;
    }
    drain(world);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world = { .now_ms = 1000 };
    struct coordinator_config config = { .run_id = "job",
                                         .backoff_ms = 100,
                                         .join_ms = 20000,
                                         .last_call_ms = 1000,
                                         .lease_ms = 3000,
                                         .address = "",
                                         .port = 1 };
    size_t i;

    if (size < 3) {
        return 0;
    }
    world.max = 1 + data[0] % 4U;
    world.min = 1 + data[1] % world.max;
    config.min_nodes = world.min;
    config.max_nodes = world.max;
    config.max_restarts = data[2] % 8;
    CHECK(coordinator_init(&world.coordinator, &config, world.now_ms) == 0);
    world.actors[0].connected = true;
    say(&world, &world.actors[0], AGENT_HELLO - 1, 4);
    drain(&world);
    for (i = 3; i + 3 <= size; i += 3) {
        step(&world, data + i);
    }
    coordinator_destroy(&world.coordinator);
    return 0;
}
