/*
 * Random names that nobody else has taken: of records, of attempts, of stores.
 */
#ifndef FLAUNCH_WORKER_TOKEN_H
#define FLAUNCH_WORKER_TOKEN_H

#define TOKEN_LEN 32 /* hexadecimal digits */

void token_make(char token_out[TOKEN_LEN + 1]);

#endif
