#!/usr/bin/env python3
"""How jobs end: what is left after each way to end them, how long it takes, and
how soon Ctrl-C is answered."""
import argparse
import os
import signal
import statistics
import subprocess
import time

from peers import PEERS

WORKERS = 8
EACH = 12  # processes of each hostile worker

parser = argparse.ArgumentParser()
parser.add_argument('--build', default='build')
parser.add_argument('--kills', type=int, default=100)
parser.add_argument('--peer-kills', type=int, default=3)
args = parser.parse_args()

flaunch = os.path.join(args.build, 'flaunch')
hostile = os.path.join(args.build, 'tests/progs/hostile')
number = 0


def left(token):
    mark = ('FLAUNCH_BENCH=%s' % token).encode()
    pids = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open('/proc/%s/environ' % pid, 'rb') as f:
                if mark not in f.read().split(b'\0'):
                    continue
            with open('/proc/%s/stat' % pid) as f:
                if f.read().rpartition(')')[2].split()[0] not in 'ZX':
                    pids.append(int(pid))
        except OSError:
            pass
    return pids


def start(argv, n_processes):
    global number
    number += 1
    token = '%d-%d' % (os.getpid(), number)
    p = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         env=dict(os.environ, FLAUNCH_BENCH=token,
                                  OMP_NUM_THREADS='1'))
    deadline = time.monotonic() + 60
    while len(left(token)) < n_processes:
        if time.monotonic() > deadline or p.poll() is not None:
            raise SystemExit('%s did not start its processes' % argv[0])
        time.sleep(0.01)
    return p, token


def guard_of(p):
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open('/proc/%s/stat' % pid) as f:
                stat = f.read()
        except OSError:
            continue
        if '(flguard)' in stat and int(stat.rpartition(')')[2].split()[1]) == p.pid:
            return int(pid)
    raise SystemExit('no guard')


def kill_agent(p):
    p.kill()


def kill_guard(p):
    os.kill(guard_of(p), signal.SIGKILL)


def kill_both(p):
    guard = guard_of(p)
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
        p, token = start([flaunch, '--nproc-per-node=88', 'sleep', '100'], 90)
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
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             env=dict(os.environ, OMP_NUM_THREADS='1'))
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


mine = [flaunch, '--nproc-per-node=%d' % WORKERS, '--shutdown-timeout=0.2', hostile]
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
reaction('while running', [flaunch, '--nproc-per-node=8', 'sleep', '100'], 8)
reaction('while spawning', [flaunch, '--nproc-per-node=512', 'sleep', '100'], 512)
