/*
 * The directory of a run in which workers leave their error files: ours alone
 * (0700), removed at the end by the guard, so that nothing stays when we are
 * killed.
 */
#ifndef FLAUNCH_LAUNCHER_RUN_DIR_H
#define FLAUNCH_LAUNCHER_RUN_DIR_H

/*
 * Make one in the first of XDG_RUNTIME_DIR, TMPDIR and /tmp where it can be
 * made. NULL where it cannot be; to be freed.
 */
char *run_dir_make(void);

/* Remove it with the files in it; path may be NULL or gone already. */
void run_dir_remove(const char *path);

#endif
