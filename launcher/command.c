#include "launcher/command.h"

#include "launcher/template.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What execvp uses where PATH is not set (confstr _CS_PATH). */
#define PATH_FALLBACK "/bin:/usr/bin"

static bool is_file(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/*
 * Find name in the directories of path: 0 with a new string, -ENOENT, or
 * -EACCES where only files that cannot be executed were found.
 */
static int path_search(const char *name, const char *path, char **found_out)
{
    const char *dir = path != NULL ? path : PATH_FALLBACK;
    int rc = -ENOENT;

    for (;;) {
        size_t len = strcspn(dir, ":");
        char *file;

        if (asprintf(&file, "%.*s%s%s", (int)len, dir, len > 0 ? "/" : "./",
                     name) < 0) {
            return -ENOMEM;
        }
        if (is_file(file)) {
            if (access(file, X_OK) == 0) {
                *found_out = file;
                return 0;
            }
            rc = -EACCES;
        }
        free(file);
        if (dir[len] == '\0') {
            return rc;
        }
        dir += len + 1;
    }
}

/*
 * A script whose interpreter is missing fails in exec with "No such file",
 * which names the wrong file; say which, before anything starts.
 */
static int interpreter_check(const char *path, struct err *err)
{
    char head[256];
    char *interpreter;
    size_t len;
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return 0; /* executable and not readable is allowed */
    }
    n = read(fd, head, sizeof(head) - 1);
    (void)close(fd);
    if (n < 2 || head[0] != '#' || head[1] != '!') {
        return 0;
    }
    head[n] = '\0';
    interpreter = head + 2 + strspn(head + 2, " \t");
    len = strcspn(interpreter, " \t\n");
    interpreter[len] = '\0';
    if (len == 0 || is_file(interpreter)) {
        return 0;
    }
    if (interpreter[len - 1] == '\r') {
        return err_set(err, -EACCES,
                       "%s: its first line ends as on Windows, so its "
                       "interpreter is not found (dos2unix repairs that)",
                       path);
    }
    return err_set(err, -EACCES, "%s: its interpreter %s is not there", path,
                   interpreter);
}

static int binary_find(const char *name, const char *path_env, char **path_out,
                       struct err *err)
{
    struct stat info;
    int rc;

    if (strchr(name, '/') == NULL) {
        rc = path_search(name, path_env, path_out);
        if (rc == -ENOENT && is_file(name)) {
            return err_set(err, rc,
                           "%s is not in PATH; for the file here write ./%s",
                           name, name);
        }
        if (rc == -EACCES) {
            return err_set(err, rc, "%s in PATH is not executable", name);
        }
        return rc < 0 ? err_set(err, rc, "%s is not in PATH", name) : 0;
    }
    if (stat(name, &info) < 0) {
        return err_sys(err, -errno, "cannot execute %s", name);
    }
    if (S_ISDIR(info.st_mode)) {
        return err_set(err, -EACCES, "cannot execute %s: it is a directory",
                       name);
    }
    if (access(name, X_OK) < 0) {
        return err_set(err, -EACCES,
                       "cannot execute %s: it is not executable (chmod +x)",
                       name);
    }
    *path_out = strdup(name);
    return *path_out != NULL ? 0
                             : err_sys(err, -ENOMEM, "cannot find %s", name);
}

static int binary_resolve(const char *name, const char *path_env,
                          char **path_out, struct err *err)
{
    char *path = NULL;
    int rc = binary_find(name, path_env, &path, err);

    if (path == NULL) {
        return rc; /* binary_find has written err */
    }
    rc = interpreter_check(path, err);
    if (rc < 0) {
        free(path);
        return rc;
    }
    *path_out = path;
    return 0;
}

static int python_resolve(const struct command_request *request,
                          char **path_out, struct err *err)
{
    const char *named = request->python_exec;

    if (named != NULL && named[0] == '\0') {
        return err_set(err, -EINVAL,
                       "PYTHON_EXEC= is empty: name a Python, or unset it");
    }
    if (named != NULL) {
        return binary_resolve(named, request->path_env, path_out, err);
    }
    if (path_search("python3", request->path_env, path_out) == 0 ||
        path_search("python", request->path_env, path_out) == 0) {
        return 0;
    }
    return err_set(err, -ENOENT,
                   "%s needs Python and neither python3 nor python is in PATH; "
                   "PYTHON_EXEC can name it",
                   request->program[0]);
}

static bool is_python_file(const char *name)
{
    size_t len = strlen(name);

    return len > 3 && strcmp(name + len - 3, ".py") == 0;
}

/* PATH -u [-m] PROGRAM..., or PROGRAM... alone. */
static char **argv_build(const struct command_request *request, char *path,
                         bool python)
{
    /* execve takes char *, and promises to change nothing. */
    static char unbuffered[] = "-u";
    static char module[] = "-m";
    size_t n = 0;
    size_t at = 0;
    char **argv;

    while (request->program[n] != NULL) {
        n++;
    }
    argv = calloc(n + 4, sizeof(*argv));
    if (argv == NULL) {
        return NULL;
    }
    if (python) {
        argv[at++] = path;
        argv[at++] = unbuffered;
        if (request->module) {
            argv[at++] = module;
        }
    }
    memcpy(argv + at, request->program, n * sizeof(*argv));
    return argv;
}

int command_resolve(const struct command_request *request,
                    struct command *command_out, struct err *err)
{
    const char *name = request->program[0];
    bool python =
        request->run_path ||
        (!request->no_python && (request->module || is_python_file(name)));
    bool later = request->macros && strchr(name, '$') != NULL;
    struct command command = { 0 };
    int rc;

    /* Another interpreter may find it where we do not: in a container. */
    if (python && !request->module && !later && request->python_exec == NULL &&
        access(name, R_OK) < 0) {
        return err_sys(err, errno == ENOENT ? -ENOENT : -EACCES,
                       "cannot read %s", name);
    }
    rc = python ? python_resolve(request, &command.path, err)
                : binary_resolve(name, request->path_env, &command.path, err);
    if (rc < 0) {
        return rc;
    }
    command.argv = argv_build(request, command.path, python);
    if (command.argv == NULL) {
        command_destroy(&command);
        return err_sys(err, -ENOMEM, "cannot run %s", name);
    }
    *command_out = command;
    return 0;
}

char **command_expand(const struct command *command, uint32_t local_rank)
{
    char number[16];
    const struct template_value value = { "local_rank", number };
    char **argv;
    size_t n = 0;
    size_t i;

    (void)snprintf(number, sizeof(number), "%u", local_rank);
    while (command->argv[n] != NULL) {
        n++;
    }
    argv = calloc(n + 1, sizeof(*argv));
    for (i = 0; i < n && argv != NULL; i++) {
        const char *given = command->argv[i];
        size_t size = template_fill(given, &value, 1, NULL, 0) + 1;

        argv[i] = i == 0 ? strdup(given) : malloc(size);
        if (argv[i] == NULL) {
            command_free_expanded(argv);
            return NULL;
        }
        if (i > 0) {
            (void)template_fill(given, &value, 1, argv[i], size);
        }
    }
    return argv;
}

void command_free_expanded(char **argv)
{
    size_t i;

    for (i = 0; argv != NULL && argv[i] != NULL; i++) {
        free(argv[i]);
    }
    free(argv);
}

void command_destroy(struct command *command)
{
    free(command->path);
    free(command->argv);
    *command = (struct command){ 0 };
}
