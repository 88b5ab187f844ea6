#include "launcher/failure.h"

#include "launcher/exit_status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static int failed_worker_code(const struct worker *worker)
{
    if (worker->state == WORKER_FAILED) {
        return worker->step == GUARD_STEP_EXEC
                   ? exit_status_of_exec((int)worker->error)
                   : EXIT_FLAUNCH;
    }
    /* Whoever ends well after its time was up has failed none the less. */
    return worker->overdue && worker->wait_status == 0
               ? EXIT_TIME_LIMIT
               : exit_status_code(worker->wait_status);
}

/* After a stop signal: a code a worker chose itself wins over the signal. */
static int stopped_code(const struct outcome *outcome)
{
    const struct worker_group *group = outcome->group;
    bool all_zero = group->n_done == group->n;
    uint32_t i;

    for (i = 0; i < group->n; i++) {
        const struct worker *worker = &group->workers[i];

        if (worker->state != WORKER_EXITED) {
            continue;
        }
        if (WIFEXITED(worker->wait_status) &&
            WEXITSTATUS(worker->wait_status) != 0) {
            return WEXITSTATUS(worker->wait_status);
        }
        all_zero = all_zero && worker->wait_status == 0;
    }
    return all_zero ? 0 : EXIT_SIGNAL_BASE + outcome->stop_signal;
}

int outcome_exit_code(const struct outcome *outcome)
{
    const struct worker_group *group = outcome->group;

    if (outcome->timed_out) {
        return EXIT_TIME_LIMIT;
    }
    if (group->first_failure != WORKER_NONE) {
        return failed_worker_code(&group->workers[group->first_failure]);
    }
    if (outcome->own_failure != 0) {
        return outcome->own_failure;
    }
    return outcome->stop_signal != 0 ? stopped_code(outcome) : 0;
}

/* What to try when a process cannot be made, by errno. */
static const char *fork_advice(uint32_t error)
{
    switch (error) {
    case EAGAIN:
        return " (a limit of processes: ulimit -u, or the pids limit of the "
               "cgroup)";
    case ENOMEM:
        return " (not enough memory)";
    default:
        return "";
    }
}

/* What to try when exec fails, by errno. */
static const char *exec_advice(uint32_t error)
{
    switch (error) {
    case ENOEXEC:
        return " (made for another machine, or a script without #! and an "
               "interpreter as its first line)";
    case E2BIG:
        return " (arguments and environment together are too large, or one of "
               "them is longer than 128 KiB)";
    default:
        return "";
    }
}

/* " on host-b", where there are several nodes. */
static void describe_host(const struct outcome *outcome, char *text,
                          size_t size)
{
    (void)snprintf(text, size, "%s%s", outcome->host != NULL ? " on " : "",
                   outcome->host != NULL ? outcome->host : "");
}

static void describe_never_ran(const struct outcome *outcome, uint32_t rank,
                               char *text, size_t size)
{
    const struct worker *worker = &outcome->group->workers[rank];
    const char *why = strerror((int)worker->error);
    char where[280];

    describe_host(outcome, where, sizeof(where));
    rank += outcome->group->base_rank;
    if (worker->step == GUARD_STEP_EXEC) {
        (void)snprintf(text, size, "rank %u%s could not execute %s: %s%s", rank,
                       where, outcome->program, why,
                       exec_advice(worker->error));
    } else {
        (void)snprintf(
            text, size, "rank %u%s could not be %s: %s%s", rank, where,
            worker->step == GUARD_STEP_BIND ? "bound to its CPUs" : "started",
            why, fork_advice(worker->error));
    }
}

void outcome_describe(const struct outcome *outcome, char *text_out,
                      size_t size)
{
    const struct worker_group *group = outcome->group;
    const struct worker *worker;
    uint32_t rank = group->first_failure;
    char how[96];
    char where[280];
    char others[48] = "";

    text_out[0] = '\0';
    if (rank == WORKER_NONE) {
        return;
    }
    worker = &group->workers[rank];
    if (group->n_stopped > 0) {
        (void)snprintf(others, sizeof(others), "; %u other%s stopped",
                       group->n_stopped, group->n_stopped == 1 ? "" : "s");
    }
    if (worker->state == WORKER_FAILED) {
        describe_never_ran(outcome, rank, text_out, size);
    } else {
        describe_host(outcome, where, sizeof(where));
        exit_status_describe(worker->wait_status, how, sizeof(how));
        (void)snprintf(text_out, size, "rank %u%s (pid %u) %s after %.1f s%s",
                       group->base_rank + rank, where, worker->pid, how,
                       (double)(worker->ended_ns - worker->started_ns) / 1e9,
                       worker->overdue ? ", its timer having expired" : "");
    }
    (void)snprintf(text_out + strlen(text_out), size - strlen(text_out), "%s",
                   others);
}
