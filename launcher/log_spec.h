/*
 * Which output of which worker goes to a file, to the screen, or both, and
 * what a worker's stdout and stderr therefore are. Data and decisions only.
 */
#ifndef FLAUNCH_LAUNCHER_LOG_SPEC_H
#define FLAUNCH_LAUNCHER_LOG_SPEC_H

#include "common/err.h"
#include "launcher/guard_proto.h"

#include <stdbool.h>
#include <stdint.h>

/* Streams as bits, in the numbers of torchrun's -r and -t. */
#define LOG_OUT 1
#define LOG_ERR 2

/* Of one worker. */
struct log_choice {
    uint8_t redirect; /* LOG_OUT, LOG_ERR: to a file, not to the screen */
    uint8_t tee;      /* to a file and to the screen */
    bool hidden;      /* --local-ranks-filter leaves it out */
};

/* What we were given ourselves, and options that change the streams. */
struct log_screen {
    bool same; /* our stdout and stderr are one open file */
    bool terminal[2];
    bool raw;    /* --raw: workers get our descriptors */
    bool pty;    /* --pty: a pseudo-terminal in any case */
    bool prefix; /* a prefix on every line: nothing may bypass us */
};

/*
 * Read a value of --redirects or --tee: "3" for all workers, or a list of
 * RANKS:WHAT, where RANKS is a local rank, a range "0-3", or "all"; a later
 * item wins. what_out gets n_workers entries of 0..3.
 *
 * Returns 0 or -EINVAL with a sentence that names the option.
 */
int log_spec_parse(const char *option, const char *text, uint32_t n_workers,
                   uint8_t *what_out, struct err *err);

/*
 * Read --local-ranks-filter, "" for all: shown_out gets n_workers entries.
 * Ranks beyond the last are allowed, as torchrun allows them. 0 or -EINVAL.
 */
int log_filter_parse(const char *text, uint32_t n_workers, bool *shown_out,
                     struct err *err);

/*
 * What stdout and stderr of one of n_workers are: the kinds; shown is set,
 * paths are the caller's to fill in for GUARD_STREAM_FILE.
 */
void log_spec_streams(const struct log_choice *choice,
                      const struct log_screen *screen, uint32_t n_workers,
                      struct guard_stream streams_out[2]);

/* Look at our own stdout and stderr; raw, pty and prefix stay as they are. */
void log_screen_look(struct log_screen *screen);

#endif
