#!/usr/bin/env python3
"""From the launcher's exec until flaunch_init is done on the last rank, by
launcher and way to meet, beside the same launcher with /bin/true; requests to
the store per rank; and when a missing rank is named."""
import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import peers

parser = argparse.ArgumentParser()
parser.add_argument('--build', default='build')
parser.add_argument('--runs', type=int, default=11)
args = parser.parse_args()
PROG = os.path.abspath(os.path.join(args.build, 'tests/progs/init_time'))
ENV = {**os.environ, 'OMP_NUM_THREADS': '1'}


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def run(argv, env=ENV):
    start = time.monotonic_ns()
    done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit('%s: %s' % (argv, done.stderr.decode()[-500:]))
    return start, done.stdout.decode()


def measure(argv, n, *program_args):
    """Milliseconds: exec to the last rank done; a rank's own init; and its
    requests, the most of ranks other than 0, and rank 0's."""
    whole, own, most, rank_0 = [], [], 0, 0
    for _ in range(args.runs):
        start, text = run([*argv, PROG, *program_args])
        found = [tuple(map(int, m)) for m in re.findall(
            r'rank=(\d+) begin=(\d+) end=(\d+) requests=(\d+)', text)]
        assert len(found) == n, text
        whole.append((max(f[2] for f in found) - start) / 1e6)
        own.append(statistics.median((f[2] - f[1]) / 1e6 for f in found))
        most = max([most] + [f[3] for f in found if f[0] > 0])
        rank_0 = max([rank_0] + [f[3] for f in found if f[0] == 0])
    return statistics.median(whole), statistics.median(own), most, rank_0


def floor(argv):
    times = []
    for _ in range(args.runs):
        start = time.monotonic_ns()
        run([*argv, '/bin/true'])
        times.append((time.monotonic_ns() - start) / 1e6)
    return statistics.median(times)


def by_hand(n):
    """A shell that starts the ranks with the plain environment."""
    return ['sh', '-c', 'export WORLD_SIZE=%d LOCAL_WORLD_SIZE=%d '
            'MASTER_ADDR=127.0.0.1 MASTER_PORT=%d; i=0; while [ $i -lt %d ]; do '
            'RANK=$i LOCAL_RANK=$i "$@" & i=$((i+1)); done; wait'
            % (n, n, free_port(), n), 'sh']


def show(name, argv, n, *program_args):
    ms, own, most, rank_0 = measure(argv(n), n, *program_args)
    print('%-34s %3d ranks: %8.1f ms to the last rank (with true: %8.1f), init '
          'itself %6.1f ms; requests: %d, rank 0 %d (n=%d)'
          % (name, n, ms, floor(argv(n)), own, most, rank_0, args.runs),
          flush=True)


def missing_rank(timeout_s):
    """When the two that came return, after the start of the first."""
    late = []
    for _ in range(args.runs):
        env = {**ENV, 'WORLD_SIZE': '3', 'MASTER_ADDR': '127.0.0.1',
               'MASTER_PORT': str(free_port()), 'LOCAL_WORLD_SIZE': '3',
               'FLAUNCH_INIT_TIMEOUT': str(timeout_s)}
        start = time.monotonic()
        ranks = [subprocess.Popen([PROG], stderr=subprocess.PIPE,
                                  env={**env, 'RANK': i, 'LOCAL_RANK': i})
                 for i in '01']
        for p in ranks:
            said = p.communicate()[1].decode()
            assert 'rank 2 of 3 did not come' in said, said
        late.append(time.monotonic() - start)
    print('a missing rank, with a time limit of %.1f s: named on all ranks after '
          'median %.2f s, at most %.2f s (n=%d)'
          % (timeout_s, statistics.median(late), max(late), args.runs))


for count in (4, 64):
    show('flaunch, none', lambda n: [os.path.join(args.build, 'flaunch'),
                                     '--nproc_per_node=%d' % n], count)
    show('flaunch, gloo', lambda n: [os.path.join(args.build, 'flaunch'),
                                     '--nproc_per_node=%d' % n], count, 'gloo')
    show('flaunch, nccl (stand-in)', lambda n: [
        'env', 'LD_LIBRARY_PATH=' + os.path.abspath(os.path.join(
            args.build, 'tests/standin')), 'STANDIN_CUDA=count=64',
        os.path.join(args.build, 'flaunch'), '--nproc_per_node=%d' % n], count,
        'nccl')
    show('by hand, rank 0 serves, none', by_hand, count)
    with tempfile.TemporaryDirectory() as d:
        show('by hand, file, none', by_hand, count, 'none', 'file://%s/f' % d)
    for name, peer in peers.PEERS:
        way = {'hydra': 'PMI', 'mpirun': 'PMIx', 'torchrun': 'its store'}[name]
        if peer(count) is None or (name == 'torchrun' and count > 4):
            print('%s with %d ranks is not measured' % (name, count))
            continue
        show('%s, %s, none' % (name, way), peer, count)
missing_rank(4.0)
