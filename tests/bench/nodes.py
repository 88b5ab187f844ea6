#!/usr/bin/env python3
"""Several nodes: joining, losing a node, restarting, ending. Hosts are network
namespaces on this machine; figures in milliseconds unless said."""
import argparse
import concurrent.futures
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument('--build', default='build')
parser.add_argument('--runs', type=int, default=50, help='of each fault')
parser.add_argument('--restarts', type=int, default=200)
parser.add_argument('--at-once', type=int, default=10)
parser.add_argument('--only', help='join, simulated, connections, restarts, lost')
args = parser.parse_args()
BUILD = os.path.abspath(args.build)
os.environ['FLAUNCH_TEST_BUILD'] = BUILD
sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'e2e'))
from hosts import *  # noqa: E402

STAMP = os.path.join(BUILD, 'tests/bench/stamp')


def spread(times):
    times = sorted(times)
    return 'p50 %.1f, p99 %.1f, most %.1f (n=%d)' % (
        statistics.median(times),
        times[min(len(times) - 1, int(len(times) * .99))], times[-1], len(times))


def torchrun():
    python = os.environ.get('TORCH_PYTHON')
    return [python, '-m', 'torch.distributed.run', '--no-python'] \
        if python and has_pytorch(python) else None


# --- joining -----------------------------------------------------------------

def join(h, n, command, meet):
    """From the first exec to the last worker's first line."""
    begin = time.monotonic_ns()
    ps = [h.popen(i, *command, *meet(i, n), '--nproc_per_node=8', STAMP,
                  env={'FLAUNCH_DEBUG': 'detail', 'OMP_NUM_THREADS': '1'})
          for i in range(n)]
    results = h.finish_all(ps)
    assert not any(codes(results)), results
    stamps = [int(line.split()[2]) for line in ranks_said(results)]
    assert len(stamps) == 8 * n, results
    told = re.search(r'coordinator: (\d+) messages', results[0].err)
    return (max(stamps) - begin) / 1e6, int(told.group(1)) if told else None


def flaunch_meets(i, n):
    return ['--nnodes=%d' % n, '--node_rank=%d' % i, '--master_addr=10.77.0.1']


def torchrun_meets(i, n):
    return flaunch_meets(i, n) + ['--master_port=29500']


def bench_join():
    print('n nodes x 8 workers: exec to the last worker running')
    for n in (2, 8):
        with Hosts(n) as h:
            times, told = zip(*[join(h, n, [FLAUNCH], flaunch_meets)
                                for _ in range(11)])
            print('  flaunch, %d nodes: %s; coordinator\'s messages %d, %.1f a node'
                  % (n, spread(times), told[0], told[0] / n))
            peer = torchrun()
            if peer and n == 2:
                times = [join(h, n, peer, torchrun_meets)[0] for _ in range(3)]
                print('  torchrun (static), %d nodes: %s' % (n, spread(times)))


# --- many agents ----------------------------------------------------------------

def bench_simulated():
    print('the coordinator alone, by step: nanoseconds, messages in and out, per '
          'agent (median of 5)')
    program = os.path.join(BUILD, 'tests/bench/coordinator_sim')
    for n in (8, 1000, 12500):
        steps = {}
        for _ in range(5):
            text = subprocess.run([program, str(n)], stdout=subprocess.PIPE,
                                  check=True).stdout.decode()
            for line in text.splitlines():
                step, _, ns, n_in, n_out = line.split()
                steps.setdefault(step, []).append((float(ns), n_in, n_out))
        print('  %5d agents: %s' % (n, '; '.join(
            '%s %.0f ns, %s in, %s out' % (
                step, statistics.median(x[0] for x in found), *found[0][1:])
            for step, found in steps.items())))


def bench_connections():
    import resource
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = min(12500, (hard - 200) // 2)
    print('simulated agents over real connections (file limit %d)' % hard)
    for n in (8, 1000, most):
        joined, ended = [], []
        for _ in range(3):
            port = free_port()
            host = start(['--nnodes=%d' % n, '--node-rank=0', '--rdzv-id=bench',
                          '--master-port=%d' % port, 'true'])
            wait_until(lambda: listens(port), 'the host node')
            done = subprocess.run([os.path.join(BUILD, 'tests/bench/agents'),
                                   '127.0.0.1', str(port), str(n), 'bench'],
                                  stdout=subprocess.PIPE)
            assert done.returncode == 0, finish(host)
            r = finish(host)
            assert r.code == 0, r
            a, b, messages = map(float, done.stdout.split())
            joined.append(a)
            ended.append(b)
        print('  %5d agents: first connection to last START %.1f, to last END '
              '%.1f; %.0f us an agent, %.1f messages (n=3)'
              % (n, statistics.median(joined), statistics.median(ended),
                 1000 * statistics.median(joined) / n, messages))


def listens(port):
    with open('/proc/net/tcp6') as f:
        return ':%04X ' % port in f.read()


# --- a node is lost ----------------------------------------------------------------

def lose(name, fault):
    """One job of two nodes: fault to the host's word, and to the last worker's
    death on the node; what is left."""
    with Hosts(2) as h:
        ps = h.start_all('--nproc_per_node=2', STAMP, '1000')
        for p in ps:
            for _ in range(2):
                assert p.stdout.readline()
        time.sleep(1 + int.from_bytes(os.urandom(2), 'little') / 65536)
        workers = [pid for pid, n in left_behind(ps[1].token) if n == '(stamp)']
        begin = time.monotonic()
        fault(h, ps)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            dead = pool.submit(wait_until, lambda: not any(
                os.path.exists('/proc/%d' % w) for w in workers) and
                time.monotonic(), 'their death')
            while b'lost node 1' not in ps[0].stderr.readline():
                pass
            seen = time.monotonic()
            dead = dead.result()
        ps[1].send_signal(signal.SIGCONT)
        for p in ps:
            finish(p)
        left = sum(len(left_behind(p.token)) for p in ps)
        return (seen - begin) * 1000, (dead - begin) * 1000, left


def bench_lost():
    print('a node is lost (T = 10 s): fault to the host node\'s word; to the death '
          'of its workers')
    faults = [
        ('its agent is killed', lambda h, ps: ps[1].kill()),
        ('its agent is stopped', lambda h, ps: ps[1].send_signal(signal.SIGSTOP)),
        ('silence both ways', lambda h, ps: h.cut(1)),
        ('nothing comes from it', lambda h, ps: h.drop_from(1)),
        ('nothing goes to it', lambda h, ps: h.drop_to(1)),
        ('its link is down', lambda h, ps: h.unplug(1)),
    ]
    left = 0
    for name, fault in faults:
        with concurrent.futures.ThreadPoolExecutor(
                1 if 'killed' in name else args.at_once) as pool:
            found = list(pool.map(lambda _: lose(name, fault), range(args.runs)))
        left += sum(f[2] for f in found)
        print('  %s: %s; workers dead after %s' % (
            name, spread([f[0] for f in found]), spread([f[1] for f in found])))
    print('  processes left on any node: %d' % left)


# --- a rank is killed ----------------------------------------------------------------

def restarts(h, command, meet, n_restarts, more):
    times = []
    ps = [h.popen(i, *command, *meet(i, 2), *more, '--nproc_per_node=8',
                  '--max-restarts=%d' % n_restarts, STAMP, '1000',
                  env={'OMP_NUM_THREADS': '1'}) for i in range(2)]
    for attempt in range(n_restarts + 1):
        stamps = []
        for p in ps:
            found = []
            while len(found) < 8:
                line = p.stdout.readline().split()
                assert line, finish(p)
                found.append((int(line[2]), int(line[3])))
            stamps += found
        if attempt > 0:
            times.append((max(s[0] for s in stamps) - begin) / 1e6)
        if attempt < n_restarts:
            begin = time.monotonic_ns()
            os.kill(stamps[attempt % 16][1], signal.SIGKILL)
    for p in ps:
        p.terminate()
    for p in ps:
        p.wait()
    # torchrun leaves some, which hold the pipes.
    left = [pid for p in ps for pid, _ in left_behind(p.token)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    for p in ps:
        finish(p)
    return times, len(left)


def bench_restarts():
    print('2 nodes x 8 workers: a rank is killed, to the last of all running again')
    with Hosts(2) as h:
        times, left = restarts(h, [FLAUNCH], flaunch_meets, args.restarts,
                               ['--restart-backoff=0'])
        print('  flaunch: %s; left after TERM: %d' % (spread(times), left))
        if torchrun():
            times, left = restarts(h, torchrun(), lambda i, n: [
                '--nnodes=2', '--rdzv-backend=c10d',
                '--rdzv-endpoint=10.77.0.1:29400',
                '--rdzv-conf=is_host=%d' % (i == 0)], 5, [])
            print('  torchrun (c10d): %s; left after TERM: %d'
                  % (spread(times), left))


for name, bench in (('join', bench_join), ('simulated', bench_simulated),
                    ('connections', bench_connections),
                    ('restarts', bench_restarts), ('lost', bench_lost)):
    if args.only in (None, name):
        bench()
