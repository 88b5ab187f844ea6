/*
 * How the ranks of a launcher find their store; pure, over an environment
 * passed in.
 */
#ifndef FLAUNCH_WORKER_CHANNEL_H
#define FLAUNCH_WORKER_CHANNEL_H

#include "worker/detected.h"
#include "common/environ.h"
#include "worker/flaunch.h"

#include <stdbool.h>

/*
 * Choose, for the launcher and place in detected, and fill in host, port, path
 * and token.
 *
 * url  tcp://HOST:PORT, file:///PATH; NULL or env://: as the launcher has it
 *
 * Returns 0, or -EINVAL with a sentence.
 */
int channel_choose(const struct environ_view *env, const char *url,
                   struct detected *detected, struct flaunch_error *error);

/* Append the channel to the explanation, without an end of line. */
void channel_explain(struct detected *detected);

/* Whether url says where to meet. */
bool channel_url_gives_address(const char *url);

/*
 * Whether somebody answers PMI here; why says why not. A process that inherits
 * the variable without the descriptor would write into whatever has that number
 * now.
 */
bool channel_pmi_is_live(const struct environ_view *env, char *why,
                         size_t why_size);

#endif
