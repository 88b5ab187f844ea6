#!/usr/bin/env python3
"""The store: requests a second beside redis, PyTorch's two servers and a bare
libuv echo; thousands of clients that join at once; memory; how the cost of a
request depends on the number of keys; the start of a NCCL job; what honest
clients notice of hostile ones. Medians, servers in turns."""
import argparse
import contextlib
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument('--build', default='build')
parser.add_argument('--rounds', type=int, default=9)
parser.add_argument('--ms', type=int, default=400, help='of each measurement')
parser.add_argument('--only', help='rate, get, join, memory, keys, job, hostile')
args = parser.parse_args()
BUILD = os.path.abspath(args.build)
HERE = os.path.dirname(os.path.abspath(__file__))
os.environ['FLAUNCH_TEST_BUILD'] = BUILD
sys.path.insert(0, os.path.join(HERE, '..', 'e2e'))
from harness import clean_env, has_pytorch  # noqa: E402
from store import Store, text  # noqa: E402

LOAD = os.path.join(BUILD, 'tests/bench/store_load')
PEER = os.path.join(BUILD, 'tests/bench/store_peer')
FLAUNCH = os.path.join(BUILD, 'flaunch')
TORCH = os.path.join(HERE, '..', 'interop', 'torch_store.py')
TORCH_ROUNDS = 3
SHAPES = ((1, 1), (8, 1), (50, 1), (50, 16))
CPUS = sorted(os.sched_getaffinity(0))


def raise_limit():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


@contextlib.contextmanager
def server(argv, port=None, cpu=None, stdin=subprocess.DEVNULL):
    """A server in a session of its own; its port, and its process."""
    if cpu is not None:
        argv = ['taskset', '-c', str(cpu), *argv]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=stdin,
                               stderr=subprocess.DEVNULL, env=clean_env(),
                               start_new_session=True)
    try:
        if port is None:
            port = int(process.stdout.readline().rsplit(b':', 1)[-1])
        else:
            for _ in range(500):
                try:
                    socket.create_connection(('127.0.0.1', port)).close()
                    break
                except OSError:
                    time.sleep(.01)
        yield port, process
    finally:
        if stdin == subprocess.PIPE:
            process.stdin.close()
        process.terminate()
        process.wait()


def ours(*options, cpu=None):
    return server([FLAUNCH, '--store-only', *options], cpu=cpu)


def redis(cpu):
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    return server(['redis-server', '--port', str(port), '--save', '',
                   '--appendonly', 'no', '--bind', '127.0.0.1',
                   '--protected-mode', 'no'], port=port, cpu=cpu)


def torch_is_there():
    python = os.environ.get('TORCH_PYTHON')
    return python is not None and has_pytorch(python)


def torch(backend, cpu):
    return server([os.environ['TORCH_PYTHON'], TORCH, 'server', backend],
                  cpu=cpu, stdin=subprocess.PIPE)


def peers():
    """Name, kind of load, and how to start; flaunch first."""
    found = [('flaunch', 'tcpstore', lambda cpu: ours(cpu=cpu)),
             ('echo', 'echo', lambda cpu: server([PEER, 'echo'], cpu=cpu))]
    if shutil.which('redis-server'):
        found.append(('redis', 'redis', redis))
    if torch_is_there():
        found.append(('torch uv', 'tcpstore', lambda cpu: torch('uv', cpu)))
        found.append(('torch thr', 'tcpstore',
                      lambda cpu: torch('threaded', cpu)))
    return found


def load(kind, port, shape, op, cpu=None, keys=1, ms=None):
    """Requests a second, and microseconds: p50, p99, p99.9, most."""
    argv = [LOAD, 'rate', kind, '127.0.0.1', str(port), str(shape[0]),
            str(shape[1]), str(ms or args.ms), str(keys), op]
    if cpu is not None:
        argv = ['taskset', '-c', str(cpu), *argv]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True)
    return [float(x) for x in done.stdout.split()]


def spread(values):
    return '%s (%s to %s)' % tuple(
        '%.3g' % x for x in (statistics.median(values), min(values),
                             max(values)))


# --- requests a second -----------------------------------------------------------

def rate(pinned):
    server_cpu, load_cpu = (CPUS[-1], CPUS[0]) if pinned else (None, None)
    found = peers()
    figures = {}
    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(start(server_cpu))[0]
                 for _, _, start in found]
        for op in ('get', 'add'):
            for shape in SHAPES:
                for i in range(args.rounds):
                    for (name, kind, _), port in zip(found, ports):
                        if op == 'add' and name == 'echo':
                            continue
                        # PyTorch's look up the name of each client: slow.
                        if name.startswith('torch') and i >= TORCH_ROUNDS:
                            continue
                        figures.setdefault((op, shape, name), []).append(
                            load(kind, port, shape, op, load_cpu))
    print('requests/s, %s: median (least to most)' % (
        'server and load on a CPU each' if pinned else 'not pinned'))
    for op in ('get', 'add'):
        for shape in SHAPES:
            own = [f[0] for f in figures[op, shape, 'flaunch']]
            for name, _, _ in found:
                if (op, shape, name) not in figures:
                    continue
                rates = [f[0] for f in figures[op, shape, name]]
                tail = statistics.median(f[3] for f in figures[op, shape, name])
                print('  %s %2d x %-2d %-9s %s, p99.9 %.0f us, n = %d%s' % (
                    op, *shape, name, spread(rates), tail, len(rates),
                    '' if name == 'flaunch' else '; flaunch is %.2f of it' %
                    statistics.median(a / b for a, b in zip(own, rates))))


def one_cpu():
    """One connection, where both share a CPU: nobody sleeps."""
    found = peers()
    print('1 connection, server and load on one CPU, get, n = %d' % args.rounds)
    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(start(CPUS[0]))[0]
                 for _, _, start in found]
        figures = [[load(kind, port, (1, 1), 'get', CPUS[0])[0]
                    for (_, kind, _), port in zip(found, ports)]
                   for _ in range(args.rounds)]
    for i, (name, _, _) in enumerate(found):
        print('  %-9s %s' % (name, spread([f[i] for f in figures])))


# --- a get of the client -----------------------------------------------------------

def get():
    """Our client's get of a key that is there, and PyTorch's."""
    script = ('import sys, time, torch.distributed as d\n'
              's = d.TCPStore("127.0.0.1", int(sys.argv[1]), is_master=False)\n'
              's.set("k", "v")\n'
              'for _ in range(100): s.get("k")\n'
              'b = time.perf_counter()\n'
              'for _ in range(2000): s.get("k")\n'
              'print((time.perf_counter() - b) / 2000 * 1e6)\n')
    times = {'libflaunch': [], 'PyTorch': []}
    with ours() as (port, _):
        for _ in range(args.rounds):
            feed = b'set k v\n' + b'get k\n' * 100
            begin_feed = feed + b'get k\n' * 2000
            spent = []
            for data in (feed, begin_feed):
                begin = time.perf_counter()
                subprocess.run([os.path.join(BUILD, 'tests/progs/store_calls'),
                                '127.0.0.1', str(port), '2.2', '60000'],
                               input=data, stdout=subprocess.DEVNULL,
                               check=True)
                spent.append(time.perf_counter() - begin)
            times['libflaunch'].append((spent[1] - spent[0]) / 2000 * 1e6)
            if torch_is_there():
                times['PyTorch'].append(float(subprocess.run(
                    [os.environ['TORCH_PYTHON'], '-c', script, str(port)],
                    stdout=subprocess.PIPE, check=True).stdout))
    print('get of a key that is there, at our server, us a call, n = %d x 2000'
          % args.rounds)
    for name, values in times.items():
        if values:
            print('  %-10s %s' % (name, spread(values)))


# --- many at once -------------------------------------------------------------------

def listen_drops():
    with open('/proc/net/netstat') as f:
        rows = f.read().splitlines()
    for names, numbers in zip(rows[::2], rows[1::2]):
        table = dict(zip(names.split(), numbers.split()))
        if 'ListenDrops' in table:
            return int(table['ListenDrops'])
    return 0


def many(what, n):
    done = subprocess.run([LOAD, what[0], '127.0.0.1', str(what[1]), str(n), '6'],
                          stdout=subprocess.PIPE, check=True)
    return [float(x) for x in done.stdout.split()]


def join():
    n = min(18000, raise_limit() - 1000)
    starts = (('flaunch', lambda: ours('--store-max-connections', str(n + 500))),
              ('raw epoll', lambda: server([PEER, 'raw'])))
    if torch_is_there():
        starts += (('torch uv', lambda: torch('uv', None)),)
    figures = {name: [] for name, _ in starts}
    drops = {name: 0 for name, _ in starts}
    for _ in range(args.rounds):
        for name, start in starts:
            if name.startswith('torch') and figures[name]:
                continue  # it takes a minute, and then has not served all
            before = listen_drops()
            with start() as (port, _):
                if name.startswith('torch'):
                    Store('127.0.0.1', port)  # its first client is slow
                figures[name].append(many(('join', port), n))
            drops[name] += listen_drops() - before
    print('%d clients at once: connect, VALIDATE, PING, ADD init/; ms' % n)
    for name, rows in figures.items():
        print('  %-9s p50 %s, p99 %s, most %s; errors %d, dropped %d (n = %d)' % (
            name, *(spread([r[i] for r in rows]) for i in range(3)),
            sum(r[3] for r in rows), drops[name], len(rows)))
    own, raw = figures['flaunch'], figures['raw epoll']
    print('  flaunch is %.2f of the raw server, p99' % statistics.median(
        a[1] / b[1] for a, b in zip(own, raw)))


def job():
    limit = raise_limit()
    print('start of a NCCL job: join, id set, waited for and got, CHECK; ms')
    for ranks in (4000, 16000):
        if ranks > limit - 1000:
            print('  %d ranks: more than descriptors here (%d)' % (ranks, limit))
            continue
        rows = []
        for _ in range(args.rounds):
            with ours('--store-max-connections', str(ranks + 500)) as (port, _):
                rows.append(many(('job', port), ranks))
        print('  %d ranks: p50 %s, p99 %s, most %s; errors %d (n = %d)' % (
            ranks, *(spread([r[i] for r in rows]) for i in range(3)),
            sum(r[3] for r in rows), len(rows)))


# --- memory and keys ---------------------------------------------------------------

def private(pid):
    with open('/proc/%d/smaps_rollup' % pid) as f:
        return sum(int(line.split()[1]) << 10 for line in f
                   if line.startswith('Private_Dirty'))


def memory():
    n = min(10000, raise_limit() // 2)
    with ours('--store-max-connections', str(n + 500)) as (port, process):
        before = private(process.pid)
        hold = subprocess.Popen([LOAD, 'hold', '127.0.0.1', str(port), str(n)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        hold.stdout.readline()
        print('memory of an idle connection: %.0f bytes (n = %d)' % (
            (private(process.pid) - before) / n, n))
        hold.stdin.close()
        hold.wait()
    with ours() as (port, process):
        before = private(process.pid)
        subprocess.run([LOAD, 'fill', '127.0.0.1', str(port), '1000000'],
                       check=True)
        print('memory of a key of 14 bytes with a value of 32: %.0f bytes '
              '(n = 1,000,000)' % ((private(process.pid) - before) / 1e6))


def keys():
    print('get, 50 x 16, spread over all keys, pinned; n = %d' % args.rounds)
    with contextlib.ExitStack() as stack:
        ports = []
        for n in (10, 1000, 100000, 1000000):
            port, _ = stack.enter_context(ours(cpu=CPUS[-1]))
            subprocess.run([LOAD, 'fill', '127.0.0.1', str(port), str(n)],
                           check=True)
            ports.append((n, port))
        figures = {n: [] for n, _ in ports}
        for _ in range(args.rounds):
            for n, port in ports:
                figures[n].append(load('tcpstore', port, (50, 16), 'get',
                                       CPUS[0], keys=max(n, 2))[0])
    for n, rates in figures.items():
        print('  %7d keys: %s requests/s, %.0f ns each' % (
            n, spread(rates), 1e9 / statistics.median(rates)))
    # The longest single SET while the table grows.
    with ours() as (port, _):
        client = Store('127.0.0.1', port)
        longest = 0
        for i in range(200000):
            client.s.sendall(b'\1' + text('/grow/%d' % i) + text('v') + b'\x0d' +
                             b'abcd')
            begin = time.perf_counter()
            client.read(4)
            longest = max(longest, time.perf_counter() - begin)
        print('  the slowest of 200,000 SETs of new keys, one by one: %.2f ms'
              % (longest * 1e3))


# --- hostile clients ----------------------------------------------------------------

class Attack:
    """Runs in a thread of this process until it is stopped; the nicest there
    is, since its CPU is another machine's where there is a network."""

    def __init__(self, port):
        self.port = port
        self.over = False
        self.sockets = []

    def connect(self):
        s = socket.create_connection(('127.0.0.1', self.port))
        s.settimeout(1)
        self.sockets.append(s)
        return s

    def repeat(self, step):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        while not self.over:
            try:
                step()
            except OSError:
                time.sleep(.001)

    def stop(self):
        self.over = True
        for s in self.sockets:
            s.close()


HELLO = bytes.fromhex('00cef7853c')


def half_open(attack):
    for _ in range(min(10000, raise_limit() // 2 - 1000)):
        attack.connect().sendall(b'\0')
    return lambda: time.sleep(.1)


def byte_a_second(attack):
    slow = [attack.connect() for _ in range(200)]
    for s in slow:
        s.sendall(HELLO + b'\1' + b'\x40')

    def step():
        for s in slow:
            s.send(b'\0')
        time.sleep(1)
    return step


def long_lengths(attack):
    def step():
        with socket.create_connection(('127.0.0.1', attack.port)) as s:
            s.sendall(HELLO + b'\1' + b'\xff' * 7 + b'\x7f')
            s.recv(1)
    return step


def key_flood(attack):
    s = attack.connect()
    s.sendall(HELLO)
    block = b''.join(b'\1' + text('/f%d' % i) + text(b'x' * 100)
                     for i in range(400))
    return lambda: (s.sendall(block), time.sleep(.002))


def deaf(attack):
    first = attack.connect()
    first.sendall(HELLO + b'\1' + text('/big') + text(b'x' * (1 << 20)))
    for _ in range(30):
        s = attack.connect()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.setblocking(False)
        with contextlib.suppress(OSError):
            s.sendall(HELLO + (b'\3' + text('/big')) * 500)
    return lambda: time.sleep(.1)


def scanner(attack):
    def step():
        with socket.create_connection(('127.0.0.1', attack.port)) as s:
            s.sendall(b'GET / HTTP/1.1\r\n\r\n')
    return step


ATTACKS = (('nobody', None), ('10,000 half open', half_open),
           ('200 at a byte a second', byte_a_second),
           ('lengths of 2^63', long_lengths), ('a flood of keys', key_flood),
           ('replies never read', deaf), ('a port scanner', scanner))


def hostile():
    print('50 honest clients, get, beside hostile ones; n = %d; p99 in us' %
          args.rounds)
    figures = {name: [] for name, _ in ATTACKS}
    peaks = {}
    for _ in range(args.rounds):
        for name, make in ATTACKS:
            with ours('--store-max-memory', '64M', cpu=CPUS[-1]) as (port, p):
                attack = Attack(port)
                if make is not None:
                    thread = threading.Thread(target=attack.repeat,
                                              args=(make(attack),))
                    thread.start()
                figures[name].append(load('tcpstore', port, (50, 1), 'get',
                                          CPUS[0])[2])
                with open('/proc/%d/status' % p.pid) as f:
                    peaks[name] = [int(line.split()[1]) for line in f
                                   if line.startswith('VmHWM')][0] / 1024
                if make is not None:
                    attack.over = True
                    thread.join()
                    attack.stop()
    for name, values in figures.items():
        print('  %-22s p99 %s, %.2f of alone; peak memory %.0f MiB' % (
            name, spread(values), statistics.median(
                a / b for a, b in zip(values, figures['nobody'])), peaks[name]))


PARTS = {'rate': lambda: (rate(True), rate(False), one_cpu()), 'get': get,
         'join': join, 'memory': memory, 'keys': keys, 'job': job,
         'hostile': hostile}

for part, run in PARTS.items():
    if args.only in (None, part):
        run()
        sys.stdout.flush()
