#include "launcher/log_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define RANDOM_LEN 8
#define TRIES 100

static void random_letters(char out[RANDOM_LEN + 1])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    unsigned char bytes[RANDOM_LEN];
    size_t i;

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        memset(bytes, 0, sizeof(bytes)); /* a name taken is tried again */
    }
    for (i = 0; i < RANDOM_LEN; i++) {
        out[i] = letters[bytes[i] % (sizeof(letters) - 1)];
    }
    out[RANDOM_LEN] = '\0';
}

/* A new directory PREFIX + random letters, ours alone. */
static int make_new(const char *prefix, char **path_out, struct err *err)
{
    int i;

    for (i = 0; i < TRIES; i++) {
        char letters[RANDOM_LEN + 1];
        char *path;

        random_letters(letters);
        if (asprintf(&path, "%s%s", prefix, letters) < 0) {
            return err_sys(err, -ENOMEM, "cannot name a log directory");
        }
        if (mkdir(path, 0700) == 0) {
            *path_out = path;
            return 0;
        }
        if (errno != EEXIST) {
            int rc =
                err_sys(err, -errno, "cannot make log directory '%s'", path);

            free(path);
            return rc;
        }
        free(path);
    }
    return err_set(err, -EEXIST, "cannot find a new name for '%s...'", prefix);
}

/*
 * mkdir -p: 0 or a negative errno. n_made_out counts the directories at the
 * end of path that were not there.
 */
static int make_parents(const char *path, unsigned *n_made_out)
{
    char *copy = strdup(path);
    char *slash = copy;
    int rc = copy != NULL ? 0 : -ENOMEM;

    while (rc == 0 && slash != NULL) {
        slash = strchr(slash + 1, '/');
        if (slash != NULL) {
            *slash = '\0';
        }
        if (mkdir(copy, 0777) == 0) {
            (*n_made_out)++;
        } else if (errno != EEXIST) {
            rc = -errno;
        }
        if (slash != NULL) {
            *slash = '/';
        }
    }
    free(copy);
    return rc;
}

static bool is_ours(uid_t owner)
{
    return owner == geteuid() || owner == 0;
}

/* Refuse what another user could exchange while we write below it. */
static int check_base(const char *base, struct err *err)
{
    struct stat status;

    if (lstat(base, &status) < 0) {
        return err_sys(err, -errno, "cannot use log directory '%s'", base);
    }
    if (S_ISLNK(status.st_mode) && !is_ours(status.st_uid)) {
        return err_set(err, -EPERM,
                       "log directory '%s' is a symbolic link of another user "
                       "(uid %u)",
                       base, status.st_uid);
    }
    if (stat(base, &status) < 0) {
        return err_sys(err, -errno, "cannot use log directory '%s'", base);
    }
    if (!S_ISDIR(status.st_mode)) {
        return err_sys(err, -ENOTDIR, "cannot use log directory '%s'", base);
    }
    if ((status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0) {
        return err_set(err, -EPERM,
                       "log directory '%s' may be written by everybody, who "
                       "could exchange what is in it: chmod o-w or +t it",
                       base);
    }
    return 0;
}

static int base_make(const char *base, char **path_out, unsigned *n_made_out,
                     struct err *err)
{
    const char *tmp = getenv("TMPDIR");
    char *prefix;
    int rc;

    if (base != NULL) {
        rc = make_parents(base, n_made_out);
        if (rc < 0) {
            return err_sys(err, rc, "cannot make log directory '%s'", base);
        }
        rc = check_base(base, err);
        if (rc < 0) {
            return rc;
        }
        *path_out = realpath(base, NULL);
        return *path_out != NULL
                   ? 0
                   : err_sys(err, -errno, "cannot use log directory '%s'",
                             base);
    }
    if (asprintf(&prefix, "%s/flaunch_",
                 tmp != NULL && tmp[0] == '/' ? tmp : "/tmp") < 0) {
        return err_sys(err, -ENOMEM, "cannot name a log directory");
    }
    rc = make_new(prefix, path_out, err);
    free(prefix);
    *n_made_out = 1;
    return rc;
}

/*
 * BASE/latest names the newest run. Made aside and moved, so that it is never
 * missing; a file of that name that is no link is left alone.
 */
static void link_latest(const struct log_dir *dir)
{
    const char *slash = strrchr(dir->run, '/');
    struct stat status;
    char *link_path = NULL;
    char *new_path = NULL;

    if (slash == NULL || asprintf(&link_path, "%s/latest", dir->base) < 0 ||
        asprintf(&new_path, "%s/.latest.%ld", dir->base, (long)getpid()) < 0) {
        goto out;
    }
    if (lstat(link_path, &status) == 0 && !S_ISLNK(status.st_mode)) {
        goto out;
    }
    if (symlink(slash + 1, new_path) < 0) {
        goto out;
    }
    if (rename(new_path, link_path) < 0) {
        (void)unlink(new_path);
    }
out:
    free(link_path);
    free(new_path);
}

/* An id may hold what a file's name cannot. */
static char *run_prefix(const char *base, const char *run_id)
{
    char *prefix;
    char *at;

    if (asprintf(&prefix, "%s/%.*s_", base, NAME_MAX - RANDOM_LEN - 1, run_id) <
        0) {
        return NULL;
    }
    for (at = prefix + strlen(base) + 1; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '_';
        }
    }
    return prefix;
}

int log_dir_make(const char *base, const char *run_id, struct log_dir *dir_out,
                 struct err *err)
{
    struct log_dir dir = { 0 };
    char *prefix;
    int rc = base_make(base, &dir.base, &dir.n_made, err);

    if (rc < 0 || dir.base == NULL) {
        return rc;
    }
    prefix = run_prefix(dir.base, run_id);
    rc = prefix != NULL ? make_new(prefix, &dir.run, err)
                        : err_sys(err, -ENOMEM, "cannot name a log directory");
    free(prefix);
    if (rc < 0 || dir.run == NULL) {
        free(dir.base);
        return rc;
    }
    link_latest(&dir);
    *dir_out = dir;
    return 0;
}

/* attempt_N, or attempt_N.M where that is taken. */
static int attempt_make(struct log_dir *dir, uint32_t attempt, struct err *err)
{
    uint32_t again;

    for (again = 0; again < UINT32_MAX; again++) {
        char suffix[16] = "";

        if (again > 0) {
            (void)snprintf(suffix, sizeof(suffix), ".%u", again);
        }
        free(dir->attempt);
        if (asprintf(&dir->attempt, "%s/attempt_%u%s", dir->run, attempt,
                     suffix) < 0) {
            dir->attempt = NULL;
            return err_sys(err, -ENOMEM, "cannot name a log directory");
        }
        if (mkdir(dir->attempt, 0777) == 0) {
            return 0;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return err_sys(err, -errno, "cannot make log directory '%s'", dir->attempt);
}

int log_dir_attempt(struct log_dir *dir, uint32_t attempt, uint32_t n_workers,
                    struct err *err)
{
    int rc = attempt_make(dir, attempt, err);
    uint32_t i;

    for (i = 0; i < n_workers && rc == 0; i++) {
        char *path;

        if (asprintf(&path, "%s/%u", dir->attempt, i) < 0) {
            return err_sys(err, -ENOMEM, "cannot name a log directory");
        }
        if (mkdir(path, 0777) < 0) {
            rc = err_sys(err, -errno, "cannot make log directory '%s'", path);
        }
        free(path);
    }
    return rc;
}

char *log_dir_path(const struct log_dir *dir, uint32_t local_rank,
                   const char *name)
{
    char *path;

    if (asprintf(&path, "%s/%u/%s", dir->attempt, local_rank, name) < 0) {
        return NULL;
    }
    return path;
}

int log_dir_file(const char *path, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    if (fd < 0) {
        return err_sys(err, -errno, "cannot make log '%s'", path);
    }
    (void)close(fd);
    return 0;
}

/* Remove the directories below path that are empty, and path if it is then. */
static void remove_empty(const char *path, int depth)
{
    DIR *listing = opendir(path);
    struct dirent *entry;

    while (listing != NULL && depth > 0 && (entry = readdir(listing)) != NULL) {
        char *below;

        if (entry->d_name[0] == '.' ||
            asprintf(&below, "%s/%s", path, entry->d_name) < 0) {
            continue;
        }
        remove_empty(below, depth - 1);
        free(below);
    }
    if (listing != NULL) {
        (void)closedir(listing);
    }
    (void)rmdir(path); /* fails where something is in it, or it is a file */
}

/* Remove BASE/latest where it leads to a run that has gone. */
static void unlink_latest(const struct log_dir *dir)
{
    const char *name = strrchr(dir->run, '/');
    char target[NAME_MAX + 1];
    char *link_path;
    ssize_t len;

    if (name == NULL || asprintf(&link_path, "%s/latest", dir->base) < 0) {
        return;
    }
    len = readlink(link_path, target, sizeof(target));
    if (len == (ssize_t)strlen(name + 1) &&
        memcmp(target, name + 1, (size_t)len) == 0) {
        (void)unlink(link_path);
    }
    free(link_path);
}

/* Remove the directories that we made on the way to the base, as far as they
 * are empty. */
static void remove_made(const struct log_dir *dir)
{
    unsigned i;

    for (i = 0; i < dir->n_made && rmdir(dir->base) == 0; i++) {
        char *slash = strrchr(dir->base, '/');

        if (slash == NULL || slash == dir->base) {
            return;
        }
        *slash = '\0';
    }
}

void log_dir_end(struct log_dir *dir)
{
    if (dir->run != NULL) {
        remove_empty(dir->run, 2); /* attempts, workers */
        if (access(dir->run, F_OK) < 0) {
            unlink_latest(dir);
            remove_made(dir);
        }
    }
    free(dir->base);
    free(dir->run);
    free(dir->attempt);
    *dir = (struct log_dir){ 0 };
}
