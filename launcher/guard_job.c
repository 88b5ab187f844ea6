#include "launcher/guard_job.h"

#include "common/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Between two looks at the socket: a stop is heeded while many start. */
#define FORKS_AT_ONCE 8
#define PAUSE_FIRST_MS 1
#define PAUSE_MAX_MS 50
#define PAUSE_KILLING_MS 10 /* everything should be gone soon */

static struct guard_worker *worker_of(struct guard_job *job, pid_t pid)
{
    uint32_t i;

    for (i = 0; i < job->n_forked; i++) {
        if (job->workers[i].pid == pid && !job->workers[i].exited) {
            return &job->workers[i];
        }
    }
    return NULL;
}

static void tell_failure(struct guard_job *job, uint32_t worker, uint32_t step,
                         uint32_t error)
{
    struct guard_msg msg = {
        .type = GUARD_FAILED, .worker = worker, .step = step, .error = error
    };

    job->tell(&msg, NULL, job->arg);
}

/*
 * Tell of workers that never became their program. Called before an exit is
 * told: the record was written before the child ended.
 */
static void tell_exec_failures(struct guard_job *job)
{
    struct guard_failure failure;

    while (guard_spawn_failure(&job->spawner, &failure)) {
        if (failure.worker < job->n_forked) {
            tell_failure(job, failure.worker, failure.step, failure.error);
        }
    }
}

static void child_reaped(pid_t pid, int wait_status, const struct rusage *usage,
                         void *arg)
{
    struct guard_job *job = arg;
    struct guard_worker *worker = worker_of(job, pid);
    struct guard_msg msg = { .type = GUARD_EXITED,
                             .pid = (uint32_t)pid,
                             .status = (uint32_t)wait_status,
                             .at_ns = clock_ns(),
                             .peak_kib = (uint64_t)usage->ru_maxrss };

    if (worker == NULL) {
        return; /* an orphan that came to us */
    }
    tell_exec_failures(job);
    worker->exited = true;
    job->pause_ms = PAUSE_FIRST_MS;
    msg.worker = (uint32_t)(worker - job->workers);
    job->tell(&msg, NULL, job->arg);
}

int guard_job_init(struct guard_job *job, const struct inherited *inherited,
                   guard_job_fn *tell, void *arg)
{
    *job = (struct guard_job){ .tell = tell,
                               .arg = arg,
                               .pause_ms = PAUSE_FIRST_MS,
                               .reaper = { .reaped = child_reaped } };
    job->reaper.arg = job;
    return guard_spawner_init(&job->spawner, inherited);
}

int guard_job_begin(struct guard_job *job, struct guard_plan *plan)
{
    job->workers = calloc(plan->n_workers, sizeof(*job->workers));
    if (job->workers == NULL) {
        return -ENOMEM;
    }
    guard_streams_drop(&job->streams);
    job->plan = *plan;
    free(job->keep);
    job->keep = plan->keep[0] != '\0' ? strdup(plan->keep) : NULL;
    job->reaper.skip.names = job->keep;
    if (job->keep != NULL) {
        /* It would outlive us with what is kept in it. */
        cgroup_leaf_remove(&job->spawner.leaf);
    }
    job->n_workers = plan->n_workers;
    guard_spawner_begin(&job->spawner);
    return 0;
}

void guard_job_reset(struct guard_job *job)
{
    guard_spawner_end(&job->spawner); /* a stop may have cut the forks short */
    free(job->workers);
    guard_plan_destroy(&job->plan);
    guard_spawner_forget(&job->spawner);
    cgroup_leaf_renew(&job->spawner.leaf, getpid());
    job->workers = NULL;
    job->n_workers = 0;
    job->n_forked = 0;
    job->n_through = 0;
    job->phase = GUARD_RUNNING;
    job->pause_ms = PAUSE_FIRST_MS;
    job->reaper.give_up_ms = 0;
}

/* Fork the next worker; false when no more can or need be forked. */
static bool job_fork_one(struct guard_job *job)
{
    uint32_t i = job->n_forked;
    struct guard_msg msg = { .type = GUARD_SPAWNED, .worker = i };
    struct guard_ends ends;
    pid_t pid = guard_streams_open(&job->streams, job->plan.streams[i], &ends);

    if (pid == 0) {
        pid = guard_spawn(&job->spawner, &job->plan, i, &ends);
        guard_ends_close(&ends);
    }
    if (pid < 0) {
        job->n_workers = i; /* the others would fail as well */
        tell_failure(job, i, GUARD_STEP_FORK, (uint32_t)-pid);
        return false;
    }
    job->workers[i].pid = pid;
    job->n_forked++;
    msg.pid = (uint32_t)pid;
    msg.at_ns = clock_ns();
    msg.count = ends.n_agent;
    job->tell(&msg, ends.agent, job->arg);
    return job->n_forked < job->n_workers;
}

static void job_fork_some(struct guard_job *job)
{
    int left = FORKS_AT_ONCE;

    if (job->n_forked == job->n_workers) {
        return;
    }
    while (left > 0 && job_fork_one(job)) {
        left--;
    }
    if (job->n_forked == job->n_workers) {
        guard_spawner_end(&job->spawner);
    }
}

/* Whether a process of the group lives, or is a zombie nobody reaped yet. */
static bool group_exists(pid_t group)
{
    return kill(-group, 0) == 0 || errno != ESRCH;
}

/* The children of a shell that stand in its group; the table is scanned. */
static void signal_shell_children(const struct proc_table *table, pid_t shell,
                                  int signo)
{
    size_t i;

    for (i = 0; i < table->n; i++) {
        const struct proc *proc = &table->procs[i];

        if (proc->parent == shell && proc->group == shell &&
            proc->state != 'Z') {
            (void)kill(proc->pid, signo);
        }
    }
}

/*
 * Signal each main process once; a shell's children in its group are main
 * processes too. always: also the shell, whether it has a trap or not.
 */
static void signal_main_processes(struct guard_job *job, int signo, bool always)
{
    bool scanned = false;
    uint32_t i;

    for (i = 0; i < job->n_forked; i++) {
        struct guard_worker *worker = &job->workers[i];
        bool shell;

        if (worker->exited) {
            continue;
        }
        shell = proc_is_shell(worker->pid);
        if (shell && !scanned) {
            scanned = proc_table_scan(&job->reaper.table) == 0;
        }
        /*
         * The shell first: one whose child was killed before it knows of the
         * stop itself says "Terminated" on the user's screen.
         */
        if (!shell || always || proc_catches(worker->pid, signo)) {
            (void)kill(worker->pid, signo);
        }
        if (shell && scanned) {
            signal_shell_children(&job->reaper.table, worker->pid, signo);
        }
    }
}

void guard_job_forward(struct guard_job *job, int signo)
{
    signal_main_processes(job, signo, false);
}

void guard_job_groups(struct guard_job *job, int signo)
{
    uint32_t i;

    for (i = 0; i < job->n_forked; i++) {
        if (!job->workers[i].group_empty) {
            (void)kill(-job->workers[i].pid, signo);
        }
    }
}

void guard_job_stop(struct guard_job *job, int signo, uint64_t grace_ms)
{
    if (grace_ms == 0) {
        guard_job_kill(job);
        return;
    }
    if (job->phase != GUARD_RUNNING) {
        return;
    }
    job->phase = GUARD_STOPPING;
    job->n_workers = job->n_forked; /* no new ones */
    job->kill_ms = clock_deadline(grace_ms);
    job->pause_ms = PAUSE_FIRST_MS;
    signal_main_processes(job, signo, true);
}

void guard_job_kill(struct guard_job *job)
{
    if (job->phase < GUARD_KILLING) {
        job->phase = GUARD_KILLING;
        job->n_workers = job->n_forked;
    }
}

/* A worker's main process has ended: see to the rest of its group. */
static void worker_group_end(struct guard_job *job, struct guard_worker *worker,
                             uint64_t now_ms)
{
    if (!group_exists(worker->pid)) {
        worker->group_empty = true;
        job->n_through++;
        return;
    }
    if (worker->group_kill_ms == 0) {
        worker->group_kill_ms = job->phase == GUARD_STOPPING
                                    ? job->kill_ms
                                    : now_ms + GUARD_GROUP_GRACE_MS;
        (void)kill(-worker->pid, SIGTERM);
    }
    if (now_ms >= worker->group_kill_ms) {
        (void)kill(-worker->pid, SIGKILL);
    }
}

static void workers_look(struct guard_job *job, uint64_t now_ms)
{
    bool late = job->phase == GUARD_STOPPING && now_ms >= job->kill_ms;
    uint32_t i;

    for (i = 0; i < job->n_forked; i++) {
        struct guard_worker *worker = &job->workers[i];

        if (!worker->exited) {
            if (late) {
                (void)kill(worker->pid, SIGKILL);
            }
        } else if (!worker->group_empty) {
            if (job->phase == GUARD_STOPPING &&
                worker->group_kill_ms > job->kill_ms) {
                worker->group_kill_ms = job->kill_ms;
            }
            worker_group_end(job, worker, now_ms);
        }
    }
}

/* All workers are through: is anything left that had left its group? */
static void strays_begin(struct guard_job *job, uint64_t now_ms)
{
    if (reaper_is_empty(&job->reaper)) {
        job->phase = GUARD_DONE;
        return;
    }
    job->phase = GUARD_STRAYS;
    job->kill_ms = now_ms + GUARD_STRAY_GRACE_MS;
    job->pause_ms = PAUSE_FIRST_MS;
    (void)reaper_signal_all(&job->reaper, SIGTERM);
}

static void job_advance(struct guard_job *job, bool no_children)
{
    uint64_t now_ms = clock_ms();

    switch (job->phase) {
    case GUARD_RUNNING:
    case GUARD_STOPPING:
        workers_look(job, now_ms);
        if (job->n_through == job->n_workers &&
            (job->n_workers > 0 || job->phase == GUARD_STOPPING)) {
            strays_begin(job, now_ms);
        }
        break;
    case GUARD_STRAYS:
        if (no_children || reaper_is_empty(&job->reaper)) {
            job->phase = GUARD_DONE;
        } else if (now_ms >= job->kill_ms) {
            job->phase = GUARD_KILLING;
        }
        break;
    default:
        break;
    }
    if (job->phase == GUARD_KILLING) {
        if (!no_children) {
            cgroup_leaf_kill(&job->spawner.leaf);
        }
        switch (reaper_kill_step(&job->reaper)) {
        case REAP_EMPTY:
            job->phase = GUARD_DONE;
            break;
        case REAP_GAVE_UP:
            job->phase = GUARD_STUCK;
            break;
        case REAP_AGAIN:
            break;
        }
    }
}

/* Whether time, and not only SIGCHLD, moves the job on. */
static bool job_needs_time(const struct guard_job *job)
{
    uint32_t i;

    if (job->phase != GUARD_RUNNING) {
        return true;
    }
    for (i = 0; i < job->n_forked; i++) {
        if (job->workers[i].exited && !job->workers[i].group_empty) {
            return true;
        }
    }
    return false;
}

int guard_job_step(struct guard_job *job)
{
    unsigned pause_max_ms;
    unsigned pause_ms;
    bool no_children;

    if (job->phase == GUARD_RUNNING) {
        job_fork_some(job);
    }
    no_children = reaper_collect(&job->reaper);
    tell_exec_failures(job);
    job_advance(job, no_children);
    if (job->phase >= GUARD_DONE) {
        return 0;
    }
    if (job->phase == GUARD_RUNNING && job->n_forked < job->n_workers) {
        return 0;
    }
    if (!job_needs_time(job)) {
        return -1;
    }
    pause_ms = job->pause_ms;
    pause_max_ms =
        job->phase == GUARD_KILLING ? PAUSE_KILLING_MS : PAUSE_MAX_MS;
    pause_ms = pause_ms < pause_max_ms ? pause_ms : pause_max_ms;
    job->pause_ms = pause_ms * 2;
    return (int)pause_ms;
}
