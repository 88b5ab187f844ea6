"""Whatever is killed, nothing is left."""
import os
import random
import signal
import subprocess
import sys
import time

from harness import *

WORKERS = 8
KILLS = int(os.environ.get('FLAUNCH_TEST_KILLS', 30 if ASAN else 200))


def end_of(process, seconds=60):
    """Seconds until nobody holds the pipe that was the job's stderr. With
    --raw every process of it does, so an end of file is the end of all; else
    the guard is the last that does."""
    begin = time.monotonic()
    deadline = begin + seconds
    import select
    while True:
        ready, _, _ = select.select([process.stderr], [], [],
                                    max(0, deadline - time.monotonic()))
        if not ready:
            raise AssertionError('something still runs after %d s' % seconds)
        if not os.read(process.stderr.fileno(), 65536):
            return time.monotonic() - begin


def hostile_job(token, *options):
    return start(['--nproc_per_node=%d' % WORKERS, '--shutdown-timeout=0.2',
                  *options, prog('hostile')], token=token,
                 env={'OMP_NUM_THREADS': '1'}, stdout=subprocess.DEVNULL)


def all_up(token):
    return len(left_behind(token)) >= WORKERS * 12 + 2


def test_nothing_is_left_when_flaunch_is_killed_at_any_moment():
    rng = random.Random(7)
    took = []
    for i in range(KILLS):
        token = 'k%d-%d' % (os.getpid(), i)
        p = hostile_job(token, *(['--raw'] if i % 4 < 2 else []))
        if i % 10 == 0:
            wait_until(lambda: all_up(token), 'all processes')
        else:
            # Half of them while it starts.
            time.sleep(rng.random() * (0.003 if i % 2 else 0.08))
        p.kill()
        took.append(end_of(p))
        p.wait()
        p.stderr.close()
        assert not left_behind(token), left_behind(token)
    took.sort()
    print('%d kills of %d hostile processes: 0 left; gone after p50 %.1f ms, '
          'p99 %.1f ms, max %.1f ms' % (
              KILLS, WORKERS * 12, took[len(took) // 2] * 1e3,
              took[int(len(took) * 0.99)] * 1e3, took[-1] * 1e3))


def test_nothing_is_left_when_the_guard_is_killed():
    for i in range(5):
        token = 'g%d-%d' % (os.getpid(), i)
        p = hostile_job(token)
        wait_until(lambda: all_up(token), 'all processes')
        os.kill(guard_of(p.pid), signal.SIGKILL)
        r = finish(p)
        assert r.code == 125 and 'the guard' in r.err, r
        assert not left_behind(token), left_behind(token)


def test_nothing_is_left_after_a_stop_or_two_signals():
    for signals in ([signal.SIGTERM], [signal.SIGINT, signal.SIGINT]):
        token = 's%d' % time.monotonic_ns()
        p = hostile_job(token)
        wait_until(lambda: all_up(token), 'all processes')
        for signo in signals:
            p.send_signal(signo)
            p.stderr.readline()
        r = finish(p)
        assert r.code == 128 + signals[0], r
        assert not left_behind(token), left_behind(token)


def test_a_stopped_agent_does_not_stop_the_reaping():
    token = 'z%d' % time.monotonic_ns()
    p = start(['--nproc_per_node=20', 'sh', '-c', 'sleep 0.2'], token=token)
    wait_until(lambda: len(left_behind(token)) >= 20, 'workers')
    p.send_signal(signal.SIGSTOP)
    guard = guard_of(p.pid)
    # Reaped, not only dead: a zombie would still be a child of the guard.
    wait_until(lambda: not children_of(guard), 'the end of all workers')
    p.send_signal(signal.SIGCONT)
    assert finish(p).code == 0
    assert_nothing_left(token)


def test_the_guard_does_not_answer_to_the_name_of_flaunch():
    token = 'n%d' % time.monotonic_ns()
    p = start(['sleep', '100'], token=token)
    guard = wait_until(lambda: guard_of(p.pid), 'a guard')
    with open('/proc/%d/cmdline' % guard, 'rb') as f:
        assert b'flaunch' not in f.read()
    for signo in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        os.kill(guard, signo)
    time.sleep(0.05)
    assert guard_of(p.pid) == guard
    p.terminate()
    finish(p)
    assert_nothing_left(token)


def test_a_process_that_forks_for_ever_is_ended():
    token = 'f%d' % time.monotonic_ns()
    # Each generation outlives the one before it by a moment; 3,000 at most.
    p = start(['--shutdown-timeout=0.2', 'python3', '-c',
               'import os, signal, time\n'
               'signal.signal(signal.SIGTERM, signal.SIG_IGN)\n'
               'print("up", flush=True)\n'
               'for _ in range(3000):\n'
               '    if os.fork(): time.sleep(0.005); os._exit(0)\n'
               '    os.setsid()\n'], token=token)
    assert p.stdout.readline() == b'up\n'
    p.kill()
    end_of(p)
    p.wait()
    assert not left_behind(token), left_behind(token)


def test_a_wrapper_shells_child_gets_the_signal_too():
    """bash that runs a command does not pass a signal on, and says nothing
    of its own when it is stopped."""
    token = 'w%d' % time.monotonic_ns()
    p = start(['--nproc_per_node=2', 'sh', '-c', 'sleep 100; true'],
              token=token)
    wait_until(lambda: sum('sleep' in n for _, n in left_behind(token)) >= 2,
               'both children')
    p.terminate()
    r = finish(p, 20)  # its grace is 30 s: nobody waited for that
    assert r.code == 143, r
    assert 'Terminated' not in r.err, r
    assert_nothing_left(token)


def has_pidns():
    return program('unshare', '--user', '--pid', '--mount', '--fork', '--map-root-user',
                   'true').code == 0


def test_a_pid_namespace_ends_with_agent_and_guard():
    """Whoever is killed, also both at once: the kernel does it."""
    if not has_pidns():
        raise Skip('no user namespaces here')
    for victims in ('agent', 'guard', 'both'):
        for i in range(5):
            token = 'n%s%d-%d' % (victims, os.getpid(), i)
            p = start(['--pidns', '--nproc_per_node=%d' % WORKERS,
                       prog('hostile')], token=token,
                      env={'OMP_NUM_THREADS': '1'}, stdout=subprocess.DEVNULL)
            wait_until(lambda: all_up(token), 'all processes')
            guard = guard_of(p.pid)
            if victims != 'agent':
                os.kill(guard, signal.SIGKILL)
            if victims != 'guard':
                p.kill()
            end_of(p)
            code = p.wait()
            p.stderr.close()
            assert code == (125 if victims == 'guard' else -9), code
            assert_nothing_left(token)


def pids_of(token, wanted):
    pids = [pid for pid, name in left_behind(token) if name == wanted]
    return pids if len(pids) == 2 else None


def test_a_pid_namespace_shows_its_own_pids_and_reports_ours():
    if not has_pidns():
        raise Skip('no user namespaces here')
    token = 'o%d' % time.monotonic_ns()
    p = start(['--pidns', '--nproc-per-node=2', 'sh', '-c',
               'echo $$ $(id -u); exec sleep 100'], token=token,
              env={'OMP_NUM_THREADS': '1'})
    seen = sorted(p.stdout.readline().split() for _ in range(2))
    assert all(int(pid) < 10 and int(uid) == os.getuid() for pid, uid in seen), seen
    pids = wait_until(lambda: pids_of(token, '(sleep)'), 'two sleeps')
    os.kill(pids[0], signal.SIGKILL)
    r = finish(p)
    assert r.code == 137 and '(pid %d) was killed by SIGKILL' % pids[0] in r.err, r
    assert_nothing_left(token)
    r = flaunch('--pidns', '--keep-processes=x', 'true')
    assert r.code == 2 and '--keep-processes' in r.err, r


def group_of_this_process():
    """The directory of our group of version 2, if groups can be made in it."""
    with open('/proc/self/cgroup') as f:
        paths = [line[3:].rstrip('\n') for line in f if line.startswith('0::')]
    for mount in ('/sys/fs/cgroup', '/sys/fs/cgroup/unified'):
        place = mount + paths[0] if paths else ''
        if os.path.exists(place.rstrip('/') + '/cgroup.procs'):
            trial = '%s/test-%d' % (place.rstrip('/'), os.getpid())
            try:
                os.mkdir(trial)
            except OSError:
                break
            os.rmdir(trial)
            return place.rstrip('/')
    if os.getuid() != 0:
        raise Skip('not as an ordinary user: no control group can be made')
    raise Skip('as root, but no control group can be made here')


def group_of(pid):
    with open('/proc/%d/cgroup' % pid) as f:
        return [line[3:].rstrip('\n') for line in f if line.startswith('0::')][0]


def test_a_control_group_is_used_and_removed():
    place = group_of_this_process()
    # A flaunch within makes one of its own.
    for end in ('TERM', 'KILL', 'the guard'):
        token = 'q%d' % time.monotonic_ns()
        p = start([FLAUNCH, FLAUNCH, 'sleep', '100'], token=token)
        worker = wait_until(lambda: [pid for pid, name in left_behind(token)
                                     if name == '(sleep)'], 'the worker')[0]
        groups = group_of(worker)[len(group_of(os.getpid()).rstrip('/')):]
        assert groups.count('/flaunch.') == 3, groups
        if end == 'the guard':
            os.kill(guard_of(p.pid), signal.SIGKILL)
        else:
            p.send_signal(getattr(signal, 'SIG' + end))
        finish(p)
        assert_nothing_left(token)
        outer = place + '/' + groups.split('/')[1]
        wait_until(lambda: not os.path.exists(outer), 'the end of ' + outer, 10)
    # Chain forkers are ended at once by it.
    for i in range(5):
        token = 'c%d-%d' % (os.getpid(), i)
        p = start(['sh', '-c', 'f() { setsid sh -c "sleep 0.001; $0" "$0" & }; '
                   'x=\'setsid sh -c "$0" "$0" & exit\'; for i in 1 2 3 4; do '
                   'setsid sh -c "$x" "$x" & done; sleep 100'], token=token)
        time.sleep(0.2)
        p.kill()
        finish(p)
        assert_nothing_left(token)
