#include "worker/store_dial.h"

#include "common/clock.h"
#include "common/resolve.h"
#include "worker/sock.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAUSE_FIRST_MS 20
#define PAUSE_MAX_MS 1000
/* A store answers the hello at once; what stays silent is none, or is an old
 * one that waits for more. */
#define HELLO_MS 5000
#define HELLO_ANY_MS 2000

static const struct {
    const char *text;
    const char *words;
} wanted_rows[] = {
    [STORE_WANT_D] = { "2.2", "store of PyTorch 2.2 or later" },
    [STORE_WANT_A] = { "1.13", "store of PyTorch 1.9 to 2.0" },
    [STORE_WANT_C] = { "2.1", "store of PyTorch 2.1" },
    [STORE_WANT_ANY] = { "auto", "store" },
};

int store_wanted_parse(const char *text, enum store_wanted *wanted_out)
{
    size_t i;

    for (i = 0; i < sizeof(wanted_rows) / sizeof(wanted_rows[0]); i++) {
        if (strcmp(wanted_rows[i].text, text) == 0) {
            *wanted_out = (enum store_wanted)i;
            return 0;
        }
    }
    return -EINVAL;
}

/* Say something, and read as many bytes of an answer; no answer within
 * silence_ms is -EPROTO. */
static int ask(int fd, const uint8_t *request, size_t len, uint8_t *reply,
               size_t reply_len, uint64_t silence_ms, uint64_t deadline_ms)
{
    uint64_t silent_ms = clock_deadline(silence_ms);
    int rc = sock_send(fd, request, len, deadline_ms);

    if (rc == 0) {
        rc = sock_receive(fd, reply, reply_len,
                          clock_earlier(silent_ms, deadline_ms));
    }
    return rc == -ETIMEDOUT && silent_ms < deadline_ms ? -EPROTO : rc;
}

/*
 * Of D a hello and a first request in one write: every server of it answers
 * eight bytes; older ones take it for the beginning of a long key and stay
 * silent. Of the others that request alone.
 */
static int greet(int fd, enum store_dialect dialect, uint64_t silence_ms,
                 uint64_t deadline_ms)
{
    uint8_t hello[STORE_HELLO_LEN + 1];
    uint8_t reply[8];
    size_t len = 0;

    if (dialect == STORE_DIALECT_D) {
        hello[len++] = (uint8_t)store_opcode(dialect, STORE_OP_VALIDATE);
        le_put_u32(hello + len, STORE_MAGIC);
        len = STORE_HELLO_LEN;
    }
    hello[len++] = (uint8_t)store_opcode(dialect, STORE_OP_GETNUMKEYS);
    return ask(fd, hello, len, reply, sizeof(reply), silence_ms, deadline_ms);
}

static int dial_one(const struct addrinfo *address, enum store_dialect dialect,
                    uint64_t silence_ms, uint64_t deadline_ms)
{
    int fd = sock_connect(address, deadline_ms);
    int rc;

    if (fd < 0) {
        return fd;
    }
    rc = greet(fd, dialect, silence_ms, deadline_ms);
    if (rc < 0) {
        (void)close(fd);
        return rc;
    }
    return fd;
}

/* A server that is silent to a hello: C knows CANCEL_WAIT, A closes on it. */
static int dial_old(const struct addrinfo *address, uint64_t deadline_ms,
                    enum store_dialect *dialect_out)
{
    uint8_t cancel =
        (uint8_t)store_opcode(STORE_DIALECT_C, STORE_OP_CANCEL_WAIT);
    uint8_t code = 0;
    int fd = sock_connect(address, deadline_ms);
    int rc;

    if (fd < 0) {
        return fd;
    }
    rc = ask(fd, &cancel, 1, &code, 1, HELLO_ANY_MS, deadline_ms);
    if (rc == 0 && code == STORE_WAIT_CANCELED) {
        *dialect_out = STORE_DIALECT_C;
        return fd;
    }
    (void)close(fd);
    if (rc != -ECONNRESET) {
        return rc < 0 ? rc : -EPROTO;
    }
    *dialect_out = STORE_DIALECT_A;
    return dial_one(address, STORE_DIALECT_A, HELLO_ANY_MS, deadline_ms);
}

static int dial_address(const struct addrinfo *address,
                        enum store_wanted wanted, uint64_t deadline_ms,
                        enum store_dialect *dialect_out)
{
    int fd;

    switch (wanted) {
    case STORE_WANT_A:
        *dialect_out = STORE_DIALECT_A;
        break;
    case STORE_WANT_C:
        *dialect_out = STORE_DIALECT_C;
        break;
    default:
        *dialect_out = STORE_DIALECT_D;
        break;
    }
    fd = dial_one(address, *dialect_out,
                  wanted == STORE_WANT_ANY ? HELLO_ANY_MS : HELLO_MS,
                  deadline_ms);
    if (fd == -EPROTO && wanted == STORE_WANT_ANY) {
        return dial_old(address, deadline_ms, dialect_out);
    }
    return fd;
}

int store_dial(const char *host, uint16_t port, enum store_wanted wanted,
               uint64_t deadline_ms, enum store_dialect *dialect_out,
               struct err *err)
{
    const struct addrinfo *address;
    struct addrinfo *list;
    int fd = -EHOSTUNREACH;
    int rc = resolve_host(host, port, deadline_ms, &list, err);

    if (rc < 0) {
        return rc;
    }
    for (address = list; address != NULL && fd < 0;
         address = address->ai_next) {
        fd = dial_address(address, wanted, deadline_ms, dialect_out);
    }
    freeaddrinfo(list);
    if (fd == -EPROTO) {
        return err_set(err, fd, "what listens at %s port %u is no %s", host,
                       port, wanted_rows[wanted].words);
    }
    return fd < 0 ? err_sys(err, fd, "store %s port %u", host, port) : fd;
}

/* The pause, half of it random: clients of one job must not come in step. */
static uint64_t jittered(uint64_t pause_ms)
{
    uint32_t random = 0;

    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0) {
        random = (uint32_t)clock_ns();
    }
    return pause_ms / 2 + random % (pause_ms / 2 + 1);
}

int store_dial_patiently(const char *host, uint16_t port,
                         enum store_wanted wanted, uint64_t deadline_ms,
                         enum store_dialect *dialect_out, struct err *err)
{
    uint64_t started_ms = clock_ms();
    uint64_t pause_ms = PAUSE_FIRST_MS;
    struct err why = { 0 };

    for (;;) {
        int fd = store_dial(host, port, wanted, deadline_ms, dialect_out, &why);
        uint64_t next_pause_ms = jittered(pause_ms);

        if (fd >= 0) {
            return fd;
        }
        if (fd == -EPROTO || fd == -ENOMEM) {
            return err_set(err, fd, "%s", why.text);
        }
        if (clock_deadline(next_pause_ms) >= deadline_ms) {
            return err_set(err, -ETIMEDOUT, "%s (tried for %.1f s)", why.text,
                           (double)(clock_ms() - started_ms) / 1000);
        }
        clock_sleep_ms(next_pause_ms);
        pause_ms = pause_ms * 2 < PAUSE_MAX_MS ? pause_ms * 2 : PAUSE_MAX_MS;
    }
}
