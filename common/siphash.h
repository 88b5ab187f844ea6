/*
 * SipHash-1-3: a hash that nobody can flood who does not know the key.
 *
 * Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", with one
 * round a word and three at the end.
 */
#ifndef FLAUNCH_COMMON_SIPHASH_H
#define FLAUNCH_COMMON_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t siphash13(const uint64_t key[2], const uint8_t *data, size_t len);

#endif
