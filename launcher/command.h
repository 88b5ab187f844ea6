/*
 * What to exec: a binary as it is, a Python script or module under Python.
 */
#ifndef FLAUNCH_LAUNCHER_COMMAND_H
#define FLAUNCH_LAUNCHER_COMMAND_H

#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

struct command {
    char *path;  /* what execve gets */
    char **argv; /* NULL at its end; strings borrowed but for path */
};

/* How the program was named, and what of the environment counts. */
struct command_request {
    char **program; /* name and arguments, NULL at its end; not empty */
    bool module;    /* -m */
    bool no_python;
    bool run_path;           /* a Python script in any case */
    bool macros;             /* the script's name is filled in later */
    const char *path_env;    /* PATH, or NULL */
    const char *python_exec; /* PYTHON_EXEC, or NULL */
};

/*
 * Find the program. Fails before anything is started: -ENOENT (exit code
 * 127), -EACCES (126), or -ENOMEM, with a sentence.
 */
int command_resolve(const struct command_request *request,
                    struct command *command_out, struct err *err);

void command_destroy(struct command *command);

/*
 * The arguments of one worker, ${local_rank} and $$ in them filled in; that of
 * the program itself stays, as under torchrun. Returns them, NULL at their
 * end, to be freed with command_free_expanded; NULL without memory.
 */
char **command_expand(const struct command *command, uint32_t local_rank);

void command_free_expanded(char **argv);

#endif
