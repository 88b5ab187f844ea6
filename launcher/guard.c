#include "launcher/guard.h"

#include "common/clock.h"
#include "common/log.h"
#include "launcher/exit_status.h"
#include "launcher/fds.h"
#include "launcher/guard_job.h"
#include "launcher/guard_pair.h"
#include "launcher/pidns.h"
#include "launcher/run_dir.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Neither contains the word flaunch. */
#define GUARD_NAME "flguard"
/* Before descriptors are sent again that the kernel did not take. */
#define SEND_LATER_MS 10
/* Between two looks at output that is still to come. */
#define COPY_PAUSE_MS 5

struct guard {
    int fd;
    int child_fd; /* a signalfd: SIGCHLD */
    const char *run_dir;
    const char *timer_file;
    bool has_run_dir;
    bool had_job; /* at least one is done */
    bool agent_gone;
    uint64_t lease_ns;       /* workers may run until then; 0: for ever */
    int lease_fd;            /* a timerfd that wakes us then; -1: none yet */
    bool send_later;         /* the kernel holds too many descriptors */
    struct guard_outbox out; /* messages the agent has not taken yet */
    struct guard_job job;
    void *plan; /* mapped: its strings are the workers' */
    size_t plan_len;
    struct guard_packet packet;
};

static void guard_tell(const struct guard_msg *msg, const int *fds, void *arg)
{
    struct guard *guard = arg;

    /* Without memory the message is lost; the agent sees EMPTY or our end. */
    (void)guard_outbox_put(&guard->out, msg, fds);
}

/* Before any worker is forked: it may write there at once. */
static void run_dir_open(struct guard *guard)
{
    if (guard->run_dir != NULL && !guard->has_run_dir) {
        guard->has_run_dir = run_dir_make(guard->run_dir) == 0;
    }
}

/* Map the plan; plan_drop unmaps it when its job is done. */
static int plan_take(struct guard *guard, const struct guard_msg *msg, int fd)
{
    struct guard_plan plan;
    void *data;
    int rc;

    if (fd < 0 || guard->plan != NULL || msg->size == 0 ||
        msg->size > GUARD_PLAN_MAX) {
        return -EPROTO;
    }
    data = mmap(NULL, msg->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        return -errno;
    }
    run_dir_open(guard);
    guard->plan = data;
    guard->plan_len = msg->size;
    rc = guard_plan_decode(data, msg->size, &plan);
    if (rc == 0) {
        rc = guard_job_begin(&guard->job, &plan);
    }
    return rc;
}

static void plan_drop(struct guard *guard)
{
    guard_job_reset(&guard->job);
    if (guard->plan != NULL) {
        (void)munmap(guard->plan, guard->plan_len);
    }
    guard->plan = NULL;
}

static void spawn_refused(struct guard *guard, int rc)
{
    struct guard_msg msg = { .type = GUARD_FAILED,
                             .step = GUARD_STEP_FORK,
                             .error = (uint32_t)-rc };

    guard_tell(&msg, NULL, guard);
}

/*
 * On several nodes workers run on a lease, which the host node prolongs. When
 * it ends others may have been started in their place, whatever the agent is
 * at: it may be stopped, or alone behind a broken cable.
 */
static void lease_end(struct guard *guard)
{
    const struct guard_msg fenced = { .type = GUARD_FENCED };

    guard->lease_ns = 0;
    if (guard->plan != NULL) {
        guard_tell(&fenced, NULL, guard);
        guard_job_kill(&guard->job);
    }
}

/* Wake up when it ends, at once also after a suspend. */
static void lease_take(struct guard *guard, uint64_t until_ns)
{
    struct itimerspec at = { .it_value = {
                                 .tv_sec = (time_t)(until_ns / 1000000000),
                                 .tv_nsec = (long)(until_ns % 1000000000) } };

    guard->lease_ns = until_ns;
    if (guard->lease_fd < 0) {
        guard->lease_fd =
            timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    }
    if (guard->lease_fd < 0 ||
        timerfd_settime(guard->lease_fd, TFD_TIMER_ABSTIME, &at, NULL) < 0) {
        guard->lease_ns = 1; /* a lease that nobody watches is none */
    }
}

static void lease_check(struct guard *guard)
{
    if (guard->lease_ns != 0 && guard->plan != NULL &&
        clock_boot_ns() >= guard->lease_ns) {
        lease_end(guard);
    }
}

static void guard_handle(struct guard *guard, const struct guard_msg *msg)
{
    int rc;

    switch (msg->type) {
    case GUARD_SPAWN:
        rc = plan_take(guard, msg,
                       guard->packet.n_fds > 0 ? guard->packet.fds[0] : -1);
        if (rc < 0) {
            spawn_refused(guard, rc);
        }
        break;
    case GUARD_SIGNAL:
        if (guard->plan != NULL) {
            guard_job_forward(&guard->job, (int)msg->signo);
        }
        break;
    case GUARD_GROUPS:
        guard_job_groups(&guard->job, (int)msg->signo);
        break;
    case GUARD_STOP:
        /*
         * Without a plan its job is done: our EMPTY and this crossed. It must
         * not be kept for the next job.
         */
        if (guard->plan != NULL) {
            guard_job_stop(&guard->job, (int)msg->signo, msg->grace_ms);
        }
        break;
    case GUARD_DRAINED:
        guard_streams_drop(&guard->job.streams);
        break;
    case GUARD_LEASE:
        lease_take(guard, msg->at_ns);
        break;
    default:
        break;
    }
}

static void agent_is_gone(struct guard *guard)
{
    guard->agent_gone = true;
    guard_outbox_destroy(&guard->out);
    guard_job_kill(&guard->job);
}

static void guard_receive(struct guard *guard)
{
    struct guard_packet *packet = &guard->packet;
    int rc;

    while (!guard->agent_gone && (rc = guard_pair_receive(guard->fd, packet))) {
        struct reader reader = { .data = packet->data, .len = packet->len };
        struct guard_msg msg;

        if (rc < 0) {
            agent_is_gone(guard);
            return;
        }
        while ((rc = guard_msg_decode(&reader, &msg)) > 0) {
            guard_handle(guard, &msg);
        }
        guard_packet_close(packet);
        if (rc < 0) {
            agent_is_gone(guard); /* whoever speaks so is no agent of ours */
        }
    }
}

static void guard_wait(struct guard *guard, int timeout_ms)
{
    struct pollfd fds[3] = {
        { .fd = guard->child_fd, .events = POLLIN },
        { .fd = guard->agent_gone ? -1 : guard->fd, .events = POLLIN },
        { .fd = guard->lease_ns != 0 ? guard->lease_fd : -1, .events = POLLIN },
    };
    struct signalfd_siginfo info;
    uint64_t expired;

    if (guard->send_later) {
        timeout_ms = SEND_LATER_MS; /* POLLOUT would be true all the time */
    } else if (guard->out.bytes.len > 0) {
        fds[1].events |= POLLOUT;
    }
    (void)poll(fds, 3, timeout_ms);
    while (read(guard->child_fd, &info, sizeof(info)) > 0) {
        /* Only the wake-up counts; guard_job_step reaps. */
    }
    if (fds[2].revents != 0) {
        (void)read(guard->lease_fd, &expired, sizeof(expired));
    }
    if (fds[1].revents != 0) {
        guard_receive(guard);
    }
}

/* Send what there is; false where that shows that the agent is gone. */
static bool guard_flush(struct guard *guard)
{
    int rc = guard->agent_gone ? 0 : guard_pair_flush(guard->fd, &guard->out);

    guard->send_later = rc == GUARD_PAIR_LATER;
    if (rc < 0) {
        agent_is_gone(guard);
        return false;
    }
    return true;
}

/* Name what survived SIGKILL, to the agent or, without one, on stderr. */
static void tell_left(struct guard *guard)
{
    const struct proc_table *table = &guard->job.reaper.table;
    size_t i;

    for (i = 0; i < table->n; i++) {
        const struct proc *proc = &table->procs[i];
        struct guard_msg msg = { .type = GUARD_LEFT,
                                 .pid = (uint32_t)proc->pid,
                                 .state = (uint8_t)proc->state };

        if (!proc->descendant) {
            continue;
        }
        memcpy(msg.name, proc->name, sizeof(msg.name));
        proc_wchan(proc->pid, msg.wchan, sizeof(msg.wchan));
        if (guard->agent_gone) {
            log_line(LOG_ERROR,
                     "process %ld (%s, state %c, waits in %s) survived "
                     "SIGKILL",
                     (long)proc->pid, proc->name, proc->state, msg.wchan);
        } else {
            guard_tell(&msg, NULL, guard);
        }
    }
}

/* The last words may wait for a slow agent, but not for a stopped one. */
static void say_last_words(struct guard *guard)
{
    struct pollfd pair = { .fd = guard->fd, .events = POLLOUT };

    tell_left(guard);
    if (!guard->agent_gone && guard_pair_flush(guard->fd, &guard->out) > 0) {
        (void)poll(&pair, 1, REAP_LIMIT_MS);
        (void)guard_pair_flush(guard->fd, &guard->out);
    }
}

/*
 * The agent is dead: what the workers wrote and it did not read goes to our
 * own stdout and stderr, while they are being killed and a while after.
 */
static void copy_the_rest(struct guard *guard)
{
    struct guard_streams *streams = &guard->job.streams;
    uint64_t deadline_ms = clock_deadline(GUARD_COPY_MS);

    while (guard_streams_copy(streams, false) && clock_ms() < deadline_ms) {
        clock_sleep_ms(COPY_PAUSE_MS);
    }
    (void)guard_streams_copy(streams, true);
    guard_streams_drop(streams);
}

/* A job is done: tell the agent, or leave where it is gone. */
static bool job_is_done(struct guard *guard)
{
    const struct guard_msg empty = { .type = GUARD_EMPTY };

    if (guard->agent_gone) {
        return true;
    }
    plan_drop(guard);
    guard->had_job = true;
    guard_tell(&empty, NULL, guard);
    return false;
}

/*
 * Between jobs, while the agent is busy with our EMPTY. As a rule no file is in
 * it; one that has files waits for their reader.
 */
static void run_dir_close(struct guard *guard)
{
    if (guard->has_run_dir && guard->plan == NULL && guard->had_job) {
        guard->has_run_dir = rmdir(guard->run_dir) < 0;
    }
}

/*
 * Run jobs until the agent is gone and nothing is left, or until something
 * survives.
 */
static void guard_loop(struct guard *guard)
{
    for (;;) {
        int timeout_ms;

        lease_check(guard);
        timeout_ms = guard_job_step(&guard->job);

        if (guard->job.phase == GUARD_STUCK) {
            say_last_words(guard);
            return;
        }
        if (guard->job.phase == GUARD_DONE) {
            if (job_is_done(guard)) {
                return;
            }
            timeout_ms = -1;
        }
        if (guard->agent_gone) {
            (void)guard_streams_copy(&guard->job.streams, false);
        }
        /*
         * A send that fails tells of the agent's death: then there is more to
         * do, and no event to wait for.
         */
        if (guard_flush(guard)) {
            run_dir_close(guard);
            guard_wait(guard, timeout_ms);
        }
    }
}

/* Overwrite our copy of the command line, as `ps` shows it. */
static void rename_process(char **argv, int argc)
{
    char *end = argv[argc - 1] + strlen(argv[argc - 1]);
    size_t room = (size_t)(end - argv[0]);

    memset(argv[0], 0, room);
    (void)strncpy(argv[0], GUARD_NAME, room);
    (void)prctl(PR_SET_NAME, GUARD_NAME);
}

/*
 * Every signal blocked, which ends a process no more than an ignored one does,
 * and leaves the dispositions as they were found: the workers inherit them.
 */
static int signals_prepare(void)
{
    sigset_t set;

    (void)sigfillset(&set);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
    (void)signal(SIGCHLD, SIG_DFL); /* ignored, it would reap for us */
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Become what the guard is: 0 or a negative errno. */
static int guard_open(struct guard *guard, const struct inherited *inherited)
{
    (void)setsid();
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
        return -errno;
    }
    run_dir_open(guard); /* while the agent still makes its plan */
    guard->child_fd = signals_prepare();
    if (guard->child_fd < 0) {
        return -errno;
    }
    return guard_job_init(&guard->job, inherited, guard_tell, guard);
}

/* Remove what we have made in the file system. */
static void guard_close(struct guard *guard)
{
    cgroup_leaf_remove(&guard->job.spawner.leaf);
    if (guard->has_run_dir) {
        run_dir_remove(guard->run_dir);
    }
    if (guard->timer_file != NULL) {
        (void)unlink(guard->timer_file);
    }
}

static int guard_main(int fd, const struct guard_setup *setup)
{
    /* Static: large, and needed until this process ends. */
    static struct guard guard;

    guard.fd = fd;
    guard.lease_fd = -1;
    guard.out.pids = setup->pidns;
    guard.run_dir = setup->run_dir;
    guard.timer_file = setup->timer_file;
    if (guard_open(&guard, setup->inherited) < 0) {
        guard_close(&guard);
        return EXIT_FLAUNCH;
    }
    guard_loop(&guard);
    if (guard.agent_gone) {
        copy_the_rest(&guard);
    }
    guard_close(&guard);
    return guard.job.phase == GUARD_DONE ? 0 : EXIT_FLAUNCH;
}

int guard_start(const struct guard_setup *setup,
                struct guard_process *guard_out, struct err *err)
{
    bool pidns = setup->pidns;
    int agent_fd;
    int guard_fd;
    pid_t pid;
    int rc;

    rc = guard_pair_open(pidns, &agent_fd, &guard_fd);
    if (rc < 0) {
        return err_sys(err, rc, "cannot make the guard's socket pair");
    }
    pid = pidns ? pidns_fork(err) : fork();
    if (pid == 0) {
        /* Workers get 0, 1 and 2 only: what we hold beyond is not theirs. */
        fds_close_above(STDERR_FILENO, guard_fd);
        rename_process(setup->argv, setup->argc);
        _exit(guard_main(guard_fd, setup));
    }
    rc =
        pid >= 0 || pidns ? pid : err_sys(err, -errno, "cannot fork the guard");
    (void)close(guard_fd);
    if (pid < 0) {
        (void)close(agent_fd);
        return rc;
    }
    *guard_out = (struct guard_process){ .pid = pid, .fd = agent_fd };
    return 0;
}
