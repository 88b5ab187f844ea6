/*
 * The directory of a run in which workers leave their error files: ours alone
 * (0700), made and removed by the guard, so that nothing stays when we are
 * killed, whenever that is.
 */
#ifndef FLAUNCH_LAUNCHER_RUN_DIR_H
#define FLAUNCH_LAUNCHER_RUN_DIR_H

/*
 * Choose a name, not to be guessed, in the first of XDG_RUNTIME_DIR, TMPDIR
 * and /tmp in which we may write. NULL where there is none; to be freed.
 */
char *run_dir_name(void);

/* Make it: 0 or a negative errno. */
int run_dir_make(const char *path);

/* Remove it with the files in it; path may be NULL or gone already. */
void run_dir_remove(const char *path);

#endif
