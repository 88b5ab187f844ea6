#!/usr/bin/env python3
"""How jobs end: what is left after each way to end them, how long it takes, and
how soon Ctrl-C is answered."""
import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

from peers import PEERS

WORKERS = 8
EACH = 12  # processes of each hostile worker

parser = argparse.ArgumentParser()
parser.add_argument('--build', default='build')
parser.add_argument('--kills', type=int, default=100)
parser.add_argument('--peer-kills', type=int, default=3)
args = parser.parse_args()

os.environ['FLAUNCH_TEST_BUILD'] = os.path.abspath(args.build)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                '../e2e'))
from harness import FLAUNCH, guard_of, left_behind, popen, prog  # noqa: E402

hostile = prog('hostile')
# What is killed together with its guard leaves a directory behind.
run_dirs = tempfile.TemporaryDirectory(prefix='flaunch-bench-')
os.environ['XDG_RUNTIME_DIR'] = run_dirs.name


def left(token):
    return [pid for pid, _ in left_behind(token)]


def start(argv, n_processes):
    token = uuid.uuid4().hex
    p = popen(argv, env={'OMP_NUM_THREADS': '1'}, token=token,
              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(left(token)) < n_processes:
        if time.monotonic() > deadline or p.poll() is not None:
            raise SystemExit('%s did not start its processes' % argv[0])
        time.sleep(0.01)
    return p, token


def kill_agent(p):
    p.kill()


def kill_guard(p):
    os.kill(guard_of(p.pid), signal.SIGKILL)


def kill_both(p):
    guard = guard_of(p.pid)
    p.kill()
    os.kill(guard, signal.SIGKILL)


def send(*signals):
    def act(p):
        for signo in signals:
            p.send_signal(signo)
            time.sleep(0.05 * (len(signals) > 1))
    return act


def endings(title, argv, n_processes, act, n, patience=5):
    counts, took = [], []
    for _ in range(n):
        p, token = start(argv, n_processes)
        act(p)
        begin = time.perf_counter()
        while left(token) and time.perf_counter() - begin < patience:
            time.sleep(0.001)
        took.append(time.perf_counter() - begin)
        survivors = left(token)
        counts.append(len(survivors))
        for pid in survivors:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        p.kill()
        p.wait()
    took.sort()
    print('  %-34s %3d left at most, %5.1f on average; p50 %.0f ms, p99 %.0f ms '
          '(n = %d)' % (title, max(counts), statistics.mean(counts),
                        took[n // 2] * 1e3, took[int(n * 0.99)] * 1e3, n))


def rank_death():
    """From a rank's death until all others are gone."""
    took = []
    for _ in range(args.kills):
        p, token = start([FLAUNCH, '--nproc-per-node=88', 'sleep', '100'], 90)
        victim = [pid for pid in left(token)
                  if open('/proc/%d/comm' % pid).read() == 'sleep\n'][0]
        begin = time.perf_counter()
        os.kill(victim, signal.SIGKILL)
        p.wait()
        took.append(time.perf_counter() - begin)
    took.sort()
    print('a rank dies, 87 others end: p50 %.1f ms, p99 %.1f ms (n = %d)' % (
        took[len(took) // 2] * 1e3, took[int(len(took) * 0.99)] * 1e3, len(took)))


def reaction(title, argv, n_processes):
    """From SIGINT until flaunch says that it stops."""
    took = []
    for _ in range(args.kills):
        p = popen(argv, env={'OMP_NUM_THREADS': '1'},
                  stdout=subprocess.DEVNULL)
        time.sleep(0.005 if n_processes > 100 else 0.2)
        begin = time.perf_counter()
        p.send_signal(signal.SIGINT)
        p.stderr.readline()
        took.append(time.perf_counter() - begin)
        p.stderr.close()
        p.wait()
    took.sort()
    print('Ctrl-C %s: p50 %.1f ms, p99 %.1f ms (n = %d)' % (
        title, took[len(took) // 2] * 1e3, took[int(len(took) * 0.99)] * 1e3,
        len(took)))


mine = [FLAUNCH, '--nproc-per-node=%d' % WORKERS, '--shutdown-timeout=0.2', hostile]
all_of_mine = WORKERS * EACH + 2
print('%d hostile workers with %d processes each, what is left:' % (WORKERS, EACH))
n = args.kills
endings('flaunch, KILL', mine, all_of_mine, kill_agent, n)
endings('flaunch, TERM', mine, all_of_mine, send(signal.SIGTERM), n // 5 or 1)
endings('flaunch, INT', mine, all_of_mine, send(signal.SIGINT), n // 5 or 1)
endings('flaunch, INT twice', mine, all_of_mine,
        send(signal.SIGINT, signal.SIGINT), n // 5 or 1)
endings('flaunch, its guard killed', mine, all_of_mine, kill_guard, n // 5 or 1)
endings('flaunch, both killed', mine, all_of_mine, kill_both, n // 10 or 1)
endings('flaunch --pidns, both killed', [mine[0], '--pidns'] + mine[1:],
        all_of_mine, kill_both, n // 5 or 1)
for name, peer in PEERS:
    argv = peer(WORKERS)
    if argv is None:
        print('  %s is not installed: not compared' % name)
        continue
    for signo in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        endings('%s, %s' % (name, signo.name[3:]), argv + [hostile],
                WORKERS * EACH, send(signo), args.peer_kills)
rank_death()
reaction('while running', [FLAUNCH, '--nproc-per-node=8', 'sleep', '100'], 8)
reaction('while spawning', [FLAUNCH, '--nproc-per-node=512', 'sleep', '100'], 512)
