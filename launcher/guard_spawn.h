/*
 * From fork to exec of one worker.
 *
 * A failure between the two is told through a close-on-exec pipe that all
 * workers share; its record is there before the child's end can be seen, so
 * it is never guessed from exit code 127.
 */
#ifndef FLAUNCH_LAUNCHER_GUARD_SPAWN_H
#define FLAUNCH_LAUNCHER_GUARD_SPAWN_H

#include "launcher/cgroup_leaf.h"
#include "launcher/guard_streams.h"
#include "launcher/inherited.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct guard_spawner {
    pid_t guard_pid;
    int failure_read;  /* non-blocking */
    int failure_write; /* the children's */
    int null_fd;       /* /dev/null */
    int oom_score;     /* our own; INT_MIN: not known */
    struct rlimit fds; /* the limit as found: the workers' */
    struct cgroup_leaf leaf;
    char **env; /* base environment, room for one worker's strings */
    size_t env_room;
    const struct inherited *inherited;
};

/* A child that could not become its worker. */
struct guard_failure {
    uint32_t worker;
    uint32_t step; /* enum guard_step */
    uint32_t error;
};

/* Open the pipe, make the workers' control group where there can be one: 0 or
 * a negative errno. */
int guard_spawner_init(struct guard_spawner *spawner,
                       const struct inherited *inherited);

/*
 * Around the forks of a job: the kernel, short of memory, should like a worker
 * more than us. The score is inherited, so it is changed once, not by each
 * child.
 */
void guard_spawner_begin(struct guard_spawner *spawner);
void guard_spawner_end(struct guard_spawner *spawner);

/*
 * Fork worker number worker of plan; ends->worker become its stdout and
 * stderr. Returns its pid, or a negative errno.
 */
pid_t guard_spawn(struct guard_spawner *spawner, const struct guard_plan *plan,
                  uint32_t worker, const struct guard_ends *ends);

/* Take the next failure off the pipe; false when there is none. */
bool guard_spawn_failure(struct guard_spawner *spawner,
                         struct guard_failure *failure_out);

/* Forget the environment of an earlier plan. */
void guard_spawner_forget(struct guard_spawner *spawner);

void guard_spawner_destroy(struct guard_spawner *spawner);

#endif
