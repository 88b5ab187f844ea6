/*
 * The directory of logs, in torchrun's layout:
 *
 *   BASE/ID_RANDOM/attempt_N/LOCAL_RANK/{stdout.log,stderr.log,error.json}
 *   BASE/ID_RANDOM/attempt_N/filtered_{stdout,stderr}.log
 *   BASE/latest -> ID_RANDOM
 *
 * BASE is --log-dir, else a new directory under TMPDIR. ID_RANDOM is new for
 * each run and ours alone (0700): nothing of an earlier run is ever touched.
 */
#ifndef FLAUNCH_LAUNCHER_LOG_DIR_H
#define FLAUNCH_LAUNCHER_LOG_DIR_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialise; run NULL: there is none. */
struct log_dir {
    char *base;      /* absolute */
    char *run;       /* BASE/ID_RANDOM */
    char *attempt;   /* of the attempt under way */
    unsigned n_made; /* directories at the end of base that we made */
};

/*
 * Make base (parents too; NULL: a temporary one), the run's directory and the
 * link. A base that others could exchange under us is refused: a symbolic
 * link of another user, or a directory anyone may rename things in.
 *
 * Returns 0 or a negative errno with a sentence that names the path.
 */
int log_dir_make(const char *base, const char *run_id, struct log_dir *dir_out,
                 struct err *err);

/*
 * Make the directory of an attempt and of its n_workers; where one of that
 * number is there already, with ".1", ".2" behind it.
 */
int log_dir_attempt(struct log_dir *dir, uint32_t attempt, uint32_t n_workers,
                    struct err *err);

/* The path of a file of a worker, "stdout.log"; to be freed. NULL: no
 * memory. */
char *log_dir_path(const struct log_dir *dir, uint32_t local_rank,
                   const char *name);

/*
 * Make an empty file in the attempt's directory, or in a worker's; path as
 * log_dir_path has it. 0 or a negative errno with a sentence.
 */
int log_dir_file(const char *path, struct err *err);

/* Remove the directories in which nothing was written, and forget. */
void log_dir_end(struct log_dir *dir);

#endif
