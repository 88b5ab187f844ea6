#!/usr/bin/env python3
"""A PyTorch gloo job of 4 ranks, from the command until all are initialised,
under a loop with setsid, flaunch and torchrun in turns; and what launcher
processes themselves use of the CPU while 8 workers idle for a minute. The Python
of TORCH_PYTHON, or this one, has PyTorch."""
import argparse
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument('--build', default='build')
parser.add_argument('--runs', type=int, default=7)
parser.add_argument('--idle-seconds', type=int, default=60)
parser.add_argument('--idle-jobs', type=int, default=3)
args = parser.parse_args()
FLAUNCH = os.path.abspath(os.path.join(args.build, 'flaunch'))
PYTHON = os.environ.get('TORCH_PYTHON', sys.executable)
TORCHRUN = [PYTHON, '-m', 'torch.distributed.run']
ENV = {**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHON_EXEC': PYTHON}
RANKS = 4
WORKERS = 8
SCRIPT = '''
import os, time
import torch.distributed as dist
dist.init_process_group('gloo')
os.write(1, b'done=%d\\n' % time.monotonic_ns())
dist.barrier()
os._exit(0)
'''


def loop(script):
    """What a launcher cannot be faster than: rank 0 serves the store."""
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    return ['sh', '-c', 'export WORLD_SIZE=%d MASTER_ADDR=127.0.0.1 '
            'MASTER_PORT=%d; for i in $(seq 0 %d); do RANK=$i LOCAL_RANK=$i '
            'setsid "$0" -u "$1" & done; wait' % (RANKS, port, RANKS - 1),
            PYTHON, script]


LAUNCHERS = (
    ('loop with setsid', loop),
    ('flaunch', lambda s: [FLAUNCH, '--nproc_per_node=%d' % RANKS, s]),
    ('torchrun', lambda s: [*TORCHRUN, '--nproc_per_node=%d' % RANKS, s]),
)


def initialised(argv):
    start = time.monotonic_ns()
    done = subprocess.run(argv, env=ENV, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    ends = [int(x) for x in re.findall(rb'done=(\d+)', done.stdout)]
    if done.returncode != 0 or len(ends) != RANKS:
        sys.exit('%s: %s' % (argv, done.stderr.decode()[-500:]))
    return (max(ends) - start) / 1e9


def bench_start():
    took = {name: [] for name, _ in LAUNCHERS}
    with tempfile.TemporaryDirectory() as d:
        script = d + '/job.py'
        with open(script, 'w') as f:
            f.write(SCRIPT)
        for turn in range(args.runs + 1):
            for name, argv in LAUNCHERS:
                seconds = initialised(argv(script))
                if turn > 0:  # the first fills the page cache
                    took[name].append(seconds)
    floor = statistics.median(took['loop with setsid'])
    for name, seconds in took.items():
        median = statistics.median(seconds)
        print('%d ranks of PyTorch, gloo: all initialised after %.2f s under '
              '%-16s (%.3f of the loop; %.2f to %.2f, n=%d)'
              % (RANKS, median, name, median / floor, min(seconds),
                 max(seconds), len(seconds)), flush=True)


def cpu_ms(pid):
    """Of all threads of a process, so far."""
    total = 0
    for task in os.listdir('/proc/%d/task' % pid):
        with open('/proc/%d/task/%s/schedstat' % (pid, task)) as f:
            total += int(f.read().split()[0])
    return total / 1e6


def family(pid):
    """The launcher and what it has started but the workers, which sleep."""
    found = [pid]
    for parent in found:
        for task in os.listdir('/proc/%d/task' % parent):
            with open('/proc/%d/task/%s/children' % (parent, task)) as f:
                children = [int(c) for c in f.read().split()]
            for child in children:
                with open('/proc/%d/comm' % child) as f:
                    if f.read() != 'sleep\n':
                        found.append(child)
    return found


def count_workers(pid):
    n = 0
    for parent in family(pid):
        with open('/proc/%d/task/%d/children' % (parent, parent)) as f:
            n += len(f.read().split())
    return n


def bench_idle():
    option = '--nproc_per_node=%d' % WORKERS
    program = ['--no-python', 'sleep', str(args.idle_seconds + 60)]
    jobs = []
    for _ in range(args.idle_jobs):
        jobs += [('flaunch', [FLAUNCH, option, *program]),
                 ('torchrun', [*TORCHRUN, option, *program])]
    running = [(name, subprocess.Popen(argv, env=ENV, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL))
               for name, argv in jobs]
    deadline = time.monotonic() + 60
    for _, p in running:
        while count_workers(p.pid) < WORKERS and time.monotonic() < deadline:
            time.sleep(0.1)
    time.sleep(3)
    begin = [sum(map(cpu_ms, family(p.pid))) for _, p in running]
    time.sleep(args.idle_seconds)
    used = {'flaunch': [], 'torchrun': []}
    whole = {'flaunch': [], 'torchrun': []}
    for (name, p), before in zip(running, begin):
        now = sum(map(cpu_ms, family(p.pid)))
        used[name].append(now - before)
        whole[name].append(now)
        p.send_signal(signal.SIGTERM)
        p.wait()
    for name in used:
        print('%d idle workers: %-8s used %.2f ms of CPU in %d s (%.2f to %.2f, '
              'n=%d), %.1f ms with its start'
              % (WORKERS, name, statistics.median(used[name]),
                 args.idle_seconds, min(used[name]), max(used[name]),
                 len(used[name]), statistics.median(whole[name])), flush=True)


if subprocess.run([PYTHON, '-c', 'import torch.distributed'],
                  stderr=subprocess.DEVNULL).returncode != 0:
    print('PyTorch is not installed for %s (TORCH_PYTHON names another)'
          % PYTHON)
    sys.exit(0)
bench_start()
bench_idle()
