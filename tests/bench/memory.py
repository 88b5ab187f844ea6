#!/usr/bin/env python3
"""Memory of agent and guard together with 8 idle workers: PSS and private
dirty, and torchrun's agent beside it where PyTorch is installed."""
import argparse
import os
import re
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument('--build', default='build')
parser.add_argument('--readings', type=int, default=5)
args = parser.parse_args()


def children(pid):
    out = subprocess.run(['ps', '-o', 'pid=,comm=', '--ppid', str(pid)],
                         stdout=subprocess.PIPE).stdout.decode()
    return [(int(line.split()[0]), line.split()[1])
            for line in out.splitlines()]


def memory(pid):
    with open('/proc/%d/smaps_rollup' % pid) as f:
        text = f.read()
    return [int(re.search(r'^%s:\s+(\d+) kB' % name, text, re.M).group(1))
            for name in ('Pss', 'Private_Dirty')]


def wait_for_workers(pid, n):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = [c for p, _ in [(pid, '')] + children(pid)
                 for c, name in children(p) if name == 'sleep']
        if len(found) >= n:
            return
        time.sleep(0.05)
    sys.exit('the workers did not come')


def reading(argv):
    p = subprocess.Popen(argv, env=dict(os.environ, OMP_NUM_THREADS='1'),
                         stderr=subprocess.DEVNULL)
    try:
        wait_for_workers(p.pid, 8)
        time.sleep(0.3)
        pids = [p.pid] + [c for c, name in children(p.pid) if name != 'sleep']
        values = [memory(pid) for pid in pids]
        return [sum(v[i] for v in values) for i in (0, 1)]
    finally:
        p.terminate()
        p.wait()


def show(name, argv, n):
    got = sorted(reading(argv) for _ in range(n))
    pss, dirty = got[len(got) // 2]
    print('%s with 8 idle workers, median of %d: PSS %.2f MiB, private dirty '
          '%.2f MiB' % (name, n, pss / 1024, dirty / 1024), flush=True)


show('agent and guard', [os.path.join(args.build, 'flaunch'),
                         '--nproc_per_node=8', 'sleep', '600'], args.readings)
python = os.environ.get('TORCH_PYTHON')
if python:
    show('torchrun', [python, '-m', 'torch.distributed.run', '--standalone',
                      '--nproc_per_node=8', '--no-python', 'sleep', '600'], 1)
else:
    print('TORCH_PYTHON is not set: torchrun is not compared')
