#include "launcher/guard_spawn.h"

#include "common/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How much more than us the OOM killer should like a worker. */
#define OOM_SCORE_MORE 100
#define OOM_SCORE_MAX 1000

/* Our own score; INT_MIN where it cannot be read. */
static int oom_score_read(void)
{
    char text[16];

    return io_read_text("/proc/self/oom_score_adj", text, sizeof(text)) > 0
               ? (int)strtol(text, NULL, 10)
               : INT_MIN;
}

/* Best effort: without it the kernel may choose us instead of a worker. */
static void oom_score_write(int score)
{
    char text[16];
    int n = snprintf(text, sizeof(text), "%d", score);
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        if (write(fd, text, (size_t)n) < 0) {
            /* See above. */
        }
        (void)close(fd);
    }
}

void guard_spawner_begin(struct guard_spawner *spawner)
{
    int score = spawner->oom_score;

    if (score != INT_MIN && score < OOM_SCORE_MAX) {
        oom_score_write(score + OOM_SCORE_MORE < OOM_SCORE_MAX
                            ? score + OOM_SCORE_MORE
                            : OOM_SCORE_MAX);
    }
}

void guard_spawner_end(struct guard_spawner *spawner)
{
    if (spawner->oom_score != INT_MIN && spawner->oom_score < OOM_SCORE_MAX) {
        oom_score_write(spawner->oom_score);
    }
}

/* We hold a descriptor for every stream; workers get the limit as it was. */
static void limit_raise(struct guard_spawner *spawner)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        spawner->fds = limit;
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int guard_spawner_init(struct guard_spawner *spawner,
                       const struct inherited *inherited)
{
    int fds[2];

    *spawner = (struct guard_spawner){ .guard_pid = getpid(),
                                       .inherited = inherited,
                                       .oom_score = oom_score_read() };
    limit_raise(spawner);
    if (pipe2(fds, O_CLOEXEC) < 0) {
        return -errno;
    }
    if (fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0) {
        return -errno;
    }
    spawner->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (spawner->null_fd < 0) {
        return -errno;
    }
    spawner->leaf.fd = -1;
    if (getpid() != 1) {
        /* Process 1 of a namespace needs none, and all have that number. */
        cgroup_leaf_make(&spawner->leaf, getpid());
    }
    spawner->failure_read = fds[0];
    spawner->failure_write = fds[1];
    return 0;
}

void guard_spawner_forget(struct guard_spawner *spawner)
{
    free(spawner->env);
    spawner->env = NULL;
    spawner->env_room = 0;
}

void guard_spawner_destroy(struct guard_spawner *spawner)
{
    (void)close(spawner->failure_read);
    (void)close(spawner->failure_write);
    (void)close(spawner->null_fd);
    free(spawner->env);
    cgroup_leaf_remove(&spawner->leaf);
    *spawner = (struct guard_spawner){ 0 };
}

/* Base environment, then the worker's own: made before fork. */
static int env_fill(struct guard_spawner *spawner,
                    const struct guard_plan *plan, uint32_t worker)
{
    char **own = plan->worker_env[worker];
    size_t n_own = 0;

    while (own[n_own] != NULL) {
        n_own++;
    }
    if (spawner->env == NULL || n_own > spawner->env_room) {
        char **env = realloc(spawner->env,
                             (plan->n_base_env + n_own + 1) * sizeof(*env));

        if (env == NULL) {
            return -ENOMEM;
        }
        memcpy(env, plan->base_env, plan->n_base_env * sizeof(*env));
        spawner->env = env;
        spawner->env_room = n_own;
    }
    memcpy(spawner->env + plan->n_base_env, own, (n_own + 1) * sizeof(*own));
    return 0;
}

/* The rest runs in the child: async-signal-safe calls only, never return. */

static void child_fail(const struct guard_spawner *spawner, uint32_t worker,
                       enum guard_step step)
{
    struct guard_failure failure = { .worker = worker,
                                     .step = step,
                                     .error = (uint32_t)errno };

    /* Shorter than PIPE_BUF, so records of several children do not mix. */
    if (write(spawner->failure_write, &failure, sizeof(failure)) < 0) {
        /* The guard is gone, and so are we. */
    }
    _exit(EXIT_FAILURE);
}

/* Whoever has no share in our standard input reads an end of file. */
static void child_set_stdin(const struct guard_spawner *spawner,
                            const struct guard_plan *plan, uint32_t worker)
{
    if (plan->stdin_worker == GUARD_STDIN_ALL || plan->stdin_worker == worker) {
        return;
    }
    if (dup2(spawner->null_fd, STDIN_FILENO) < 0) {
        child_fail(spawner, worker, GUARD_STEP_SETUP);
    }
}

/* Put fd in the place of our stdout or stderr. */
static void child_place(const struct guard_spawner *spawner, uint32_t worker,
                        int fd, int number, enum guard_step step)
{
    if (fd < 0 || dup2(fd, number) < 0) {
        child_fail(spawner, worker, step);
    }
}

static void child_set_output(const struct guard_spawner *spawner,
                             const struct guard_plan *plan, uint32_t worker,
                             const struct guard_ends *ends)
{
    int i;

    for (i = 0; i < 2; i++) {
        const struct guard_stream *stream = &plan->streams[worker][i];
        int number = STDOUT_FILENO + i;

        switch (stream->kind) {
        case GUARD_STREAM_PIPE:
        case GUARD_STREAM_PTY:
            child_place(spawner, worker, ends->worker[i], number,
                        GUARD_STEP_SETUP);
            break;
        case GUARD_STREAM_FILE:
            child_place(spawner, worker,
                        open(stream->path, O_WRONLY | O_APPEND | O_NOFOLLOW |
                                               O_NOCTTY | O_CLOEXEC),
                        number, GUARD_STEP_LOG);
            break;
        case GUARD_STREAM_JOINED:
            child_place(spawner, worker, STDOUT_FILENO, number,
                        GUARD_STEP_SETUP);
            break;
        default:
            break; /* ours: it has it already */
        }
    }
}

/* To the CPUs that are its own, if they were chosen. */
static void child_bind(const struct guard_spawner *spawner,
                       const struct guard_plan *plan, uint32_t worker)
{
    if (plan->cpu_bytes > 0 &&
        syscall(SYS_sched_setaffinity, 0, plan->cpu_bytes,
                plan->cpus + (size_t)worker * plan->cpu_bytes) < 0) {
        child_fail(spawner, worker, GUARD_STEP_BIND);
    }
}

static void child_run(const struct guard_spawner *spawner,
                      const struct guard_plan *plan, uint32_t worker,
                      const struct guard_ends *ends)
{
    (void)setsid();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) {
        child_fail(spawner, worker, GUARD_STEP_SETUP);
    }
    /* The guard may have died between fork and prctl. */
    if (getppid() != spawner->guard_pid) {
        _exit(EXIT_FAILURE);
    }
    child_set_stdin(spawner, plan, worker);
    child_set_output(spawner, plan, worker, ends);
    (void)setrlimit(RLIMIT_NOFILE, &spawner->fds);
    inherited_give_signals(spawner->inherited);
    child_bind(spawner, plan, worker);
    (void)execve(plan->path, plan->argvs[plan->n_argvs == 1 ? 0 : worker],
                 spawner->env);
    child_fail(spawner, worker, GUARD_STEP_EXEC);
}

pid_t guard_spawn(struct guard_spawner *spawner, const struct guard_plan *plan,
                  uint32_t worker, const struct guard_ends *ends)
{
    int rc = env_fill(spawner, plan, worker);
    pid_t pid;

    if (rc < 0) {
        return rc;
    }
    /*
     * All signals are blocked here, as everywhere in the guard, so none is
     * delivered in the child before it has its dispositions back.
     */
    pid = cgroup_leaf_fork(&spawner->leaf);
    if (pid == 0) {
        child_run(spawner, plan, worker, ends);
    }
    return pid < 0 ? -errno : pid;
}

bool guard_spawn_failure(struct guard_spawner *spawner,
                         struct guard_failure *failure_out)
{
    return read(spawner->failure_read, failure_out, sizeof(*failure_out)) ==
           (ssize_t)sizeof(*failure_out);
}
