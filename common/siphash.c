#include "common/siphash.h"

#include "common/buf.h"

struct sip {
    uint64_t a;
    uint64_t b;
    uint64_t c;
    uint64_t d;
};

static inline uint64_t rotate(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static inline void sip_round(struct sip *s)
{
    s->a += s->b;
    s->b = rotate(s->b, 13) ^ s->a;
    s->a = rotate(s->a, 32);
    s->c += s->d;
    s->d = rotate(s->d, 16) ^ s->c;
    s->a += s->d;
    s->d = rotate(s->d, 21) ^ s->a;
    s->c += s->b;
    s->b = rotate(s->b, 17) ^ s->c;
    s->c = rotate(s->c, 32);
}

static inline void sip_word(struct sip *s, uint64_t word)
{
    s->d ^= word;
    sip_round(s);
    s->a ^= word;
}

uint64_t siphash13(const uint64_t key[2], const uint8_t *data, size_t len)
{
    struct sip s = {
        .a = key[0] ^ 0x736f6d6570736575U,
        .b = key[1] ^ 0x646f72616e646f6dU,
        .c = key[0] ^ 0x6c7967656e657261U,
        .d = key[1] ^ 0x7465646279746573U,
    };
    uint64_t last = (uint64_t)len << 56;
    size_t i;

    for (i = 0; i + 8 <= len; i += 8) {
        sip_word(&s, le_u64(data + i));
    }
    for (; i < len; i++) {
        last |= (uint64_t)data[i] << 8 * (i % 8);
    }
    sip_word(&s, last);
    s.c ^= 0xff;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}
