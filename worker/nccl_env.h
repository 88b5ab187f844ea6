/*
 * What the environment asks of NCCL, as far as it makes an initialisation fail
 * or hang; looked at before NCCL is.
 */
#ifndef FLAUNCH_WORKER_NCCL_ENV_H
#define FLAUNCH_WORKER_NCCL_ENV_H

#include "worker/flaunch.h"

#include <stdbool.h>

/* Append a sentence for each thing that is worth knowing, each followed by
 * end, as far as there is room. */
void nccl_env_notes(const char *end, char *text, size_t size);

/* The variables that all ranks must have alike, as "NAME=VALUE ...". */
void nccl_env_common(char *text, size_t size);

/*
 * Whether NCCL_SOCKET_IFNAME matches an interface: a list of prefixes; "=" in
 * front: of whole names; "^": of what is left out.
 */
bool nccl_env_interface_matches(const char *wanted, const char *name);

/*
 * The interface that NCCL is likely to take, as "NAME ADDRESS": of those that
 * are up and match, ib* first, others next, docker*, lo and virbr* last, in the
 * kernel's order. "" where there is none. Source: NCCL 2.28.
 */
void nccl_env_interface(char *text_out, size_t size);

/* Whether other hosts cannot reach such an interface. */
bool nccl_env_interface_is_local(const char *text);

/* -ENODEV with a sentence where it matches none of this host's. */
int nccl_env_check_interface(struct flaunch_error *error);

#endif
