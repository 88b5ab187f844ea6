/*
 * Where rank 0's store is, as the one text that goes over a foreign channel:
 * "flaunch1,TOKEN,PORT,ADDRESS,ADDRESS,.", printable and without blanks.
 */
#ifndef FLAUNCH_WORKER_JOB_ADDRESS_H
#define FLAUNCH_WORKER_JOB_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_ADDRESSES_MAX 12
#define JOB_ADDRESS_MAX 64
#define JOB_TOKEN_MAX 96

struct job_address {
    char token[JOB_TOKEN_MAX];
    uint16_t port;
    size_t n_hosts;
    char hosts[JOB_ADDRESSES_MAX][JOB_ADDRESS_MAX];
};

/* Write the text: 0, or -EMSGSIZE. */
int job_address_encode(const struct job_address *address, char *text_out,
                       size_t size);

/* Read a text: 0, or -EPROTO; one that is cut short is refused. */
int job_address_decode(const char *text, struct job_address *address_out);

/* This host's own addresses, numeric: those others may reach, then loopback
 * (with one node, only that). Link-local ones are left out. */
void job_address_find(struct job_address *address, bool one_node);

#endif
