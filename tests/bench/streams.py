#!/usr/bin/env python3
"""Lines a second of a tee with prefix, 8 writers, lines of 100 bytes: flaunch,
the writers alone into files, torchrun, in turns; medians, without the time of
start and end. And bytes lost when the launcher is killed."""
import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import peers

WRITERS = 8
LINE = 100

parser = argparse.ArgumentParser()
parser.add_argument('--build', default='build')
parser.add_argument('--rounds', type=int, default=5)
parser.add_argument('--lines', type=int, default=500000)
parser.add_argument('--kills', type=int, default=30)
args = parser.parse_args()

flaunch = os.path.join(args.build, 'flaunch')
writer = os.path.join(args.build, 'tests/bench/writer')
torchrun = peers.torchrun(WRITERS)
env = dict(os.environ, OMP_NUM_THREADS='1')


def timed(argv, **kwargs):
    start = time.perf_counter()
    subprocess.run(argv, env=env, check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   **kwargs)
    return time.perf_counter() - start


def alone(d, work):
    script = ' '.join('setsid %s > %s/%d &' % (' '.join(work), d, i)
                      for i in range(WRITERS)) + ' wait'
    return timed(['sh', '-c', script])


def tee(d, work, launcher):
    return timed(launcher + ['-t', '1', '--log-dir', d] + work)


def ways():
    yield 'writers alone', alone
    yield 'flaunch -t 1', lambda d, work: tee(
        d, work, [flaunch, '--nproc-per-node=%d' % WRITERS])
    if torchrun:
        yield 'torchrun -t 1', lambda d, work: tee(d, work, torchrun)


def fresh(run):
    d = tempfile.mkdtemp(prefix='flaunch-bench-')
    try:
        return run(d)
    finally:
        shutil.rmtree(d)


def rates(title, lines, extra):
    took = {name: [] for name, _ in ways()}
    for _ in range(args.rounds):
        for name, run in ways():
            # Less the time of starting and ending, which is another figure.
            nothing = fresh(lambda d: run(d, [writer, '0']))
            seconds = fresh(lambda d: run(d, [writer, str(lines)] + extra))
            took[name].append(WRITERS * lines / (seconds - nothing))
    base = statistics.median(took['writers alone'])
    print('%s, %d writers, n = %d, medians:' % (title, WRITERS, args.rounds))
    for name, values in took.items():
        rate = statistics.median(values)
        print('  %-14s %6.2f M lines/s, %7.1f MB/s, %.2f of the writers alone'
              % (name, rate / 1e6, rate * LINE / 1e6, rate / base))


def lost_by_a_kill(options):
    """A worker counts what it has written; what of it is in the output?"""
    script = ('import os\n'
              'count = os.open(os.environ["COUNT"], os.O_CREAT | os.O_WRONLY)\n'
              'n = 0\n'
              'while True:\n'
              '    n += os.write(1, b"x" * 99 + b"\\n")\n'
              '    os.pwrite(count, b"%012d" % n, 0)\n')

    def run(d):
        with open(d + '/out', 'wb') as out:
            p = subprocess.Popen([flaunch, *options(d), sys.executable, '-c',
                                  script], stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.DEVNULL,
                                 env=dict(env, COUNT=d + '/count'))
        while not os.path.exists(d + '/count'):
            time.sleep(0.001)
        time.sleep(0.1)
        p.send_signal(signal.SIGKILL)
        p.wait()
        size = -1
        while size != os.path.getsize(d + '/count') or not settled(d):
            size = os.path.getsize(d + '/count')
        with open(d + '/count') as f:
            written = int(f.read())
        logs = [os.path.join(root, name) for root, _, names in os.walk(d)
                for name in names if name in ('stdout.log', 'out')]
        return max(0, written - max(os.path.getsize(path) for path in logs))
    lost = [fresh(run) for _ in range(args.kills)]
    return statistics.median(lost), max(lost)


def settled(d):
    before = sum(os.path.getsize(os.path.join(r, n)) for r, _, ns in os.walk(d)
                 for n in ns)
    time.sleep(0.1)
    return before == sum(os.path.getsize(os.path.join(r, n))
                         for r, _, ns in os.walk(d) for n in ns)


rates('buffered writers', args.lines, [])
rates('writers that flush each line', args.lines // 4, ['flush'])
print('bytes lost by a SIGKILL of the launcher, n = %d, median and maximum:'
      % args.kills)
for title, options in (
        ('-r 1', lambda d: ['-r', '1', '--log-dir', d]),
        ('-t 1', lambda d: ['-t', '1', '--log-dir', d]),
        ('one worker to a file', lambda d: []),
        ('a pipe (a prefix is asked for)', lambda d: ['--log-prefix='])):
    print('  %-32s %d, %d' % ((title,) + lost_by_a_kill(options)))
