#!/usr/bin/env python3
"""Start N of /bin/true and wait for their end: flaunch, a bare posix_spawn loop,
hydra, mpirun and torchrun, in turns; medians and ratios, with and without two
CPU hogs."""
import argparse
import os
import statistics
import subprocess
import time

from peers import PEERS

SLOW_ROUNDS = 3

parser = argparse.ArgumentParser()
parser.add_argument('--build', default='build')
parser.add_argument('--rounds', type=int, default=41)
args = parser.parse_args()

loop = os.path.join(args.build, 'tests/bench/loop')
flaunch = os.path.join(args.build, 'flaunch')
env = dict(os.environ, OMP_NUM_THREADS='1')


def commands(n):
    yield 'loop', [loop, str(n), '/bin/true']
    yield 'flaunch', [flaunch, '--nproc_per_node=%d' % n, '/bin/true']
    for name, peer in PEERS:
        if name in there:
            yield name, peer_argv(name, peer, n)


cache = {}


def peer_argv(name, peer, n):
    if (name, n) not in cache:
        argv = peer(n)
        cache[name, n] = argv + ['/bin/true'] if argv else None
    return cache[name, n]


def seconds(argv):
    start = time.perf_counter()
    subprocess.run(argv, env=env, check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def measure(title, rounds):
    print('%s, n = %d rounds, medians:' % (title, rounds))
    for n in (1, 4, 64):
        took = {name: [] for name, _ in commands(n)}
        for _ in range(rounds):
            for name, argv in commands(n):
                # torchrun takes a second or more.
                if name != 'torchrun' or len(took[name]) < SLOW_ROUNDS:
                    took[name].append(seconds(argv))
        base = statistics.median(took['loop'])
        print('  N = %2d: ' % n + ', '.join(
            '%s %.2f ms (%.2fx, n = %d)' % (
                name, statistics.median(t) * 1e3,
                statistics.median(t) / base, len(t))
            for name, t in took.items()), flush=True)


there = set()
for name, peer in PEERS:
    if peer(1):
        there.add(name)
    else:
        print('%s is not installed: not compared' % name)
measure('start and finish N x /bin/true', args.rounds)
hogs = [subprocess.Popen(['sh', '-c', 'while :; do :; done'],
                         start_new_session=True) for _ in range(2)]
try:
    measure('the same beside two CPU hogs', max(5, args.rounds // 2))
finally:
    for hog in hogs:
        hog.kill()
        hog.wait()
