"""The store against PyTorch's own: its clients of our server, our client of
its servers, and the same random calls to both."""
import contextlib
import difflib
import os
import random
import struct

from harness import *
from store import open_store, text
from test_torch import python

HELPER = os.path.join(ROOT, 'tests', 'interop', 'torch_store.py')
HELLO = bytes.fromhex('00cef7853c')


@contextlib.contextmanager
def torch_server(backend):
    process = popen([python(), HELPER, 'server', backend],
                    stdin=subprocess.PIPE)
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        end_all_of([process])


def methods(port, *args):
    r = program(python(), HELPER, 'methods', '127.0.0.1', str(port), *args,
                seconds=300)
    assert r.code == 0, r
    return r.out.replace(':%d' % port, ':PORT').splitlines()


def test_every_method_of_a_client_is_answered_as_by_pytorchs_server():
    with torch_server('uv') as port:
        theirs = methods(port)
    with open_store() as store:
        ours = methods(store.port)
    assert len(theirs) > 60, theirs
    assert ours == theirs, '\n'.join(difflib.unified_diff(theirs, ours))


def test_it_is_answered_as_by_the_threaded_server():
    """Which has no queues."""
    with torch_server('threaded') as port:
        theirs = methods(port, 'threaded')
    with open_store() as store:
        ours = methods(store.port, 'threaded')
    assert len(theirs) > 50, theirs
    assert ours == theirs, '\n'.join(difflib.unified_diff(theirs, ours))


def test_process_groups_meet_at_our_server():
    for n in (4,) if ASAN else (2, 4, 8):
        with open_store() as store:
            ranks = [popen([python(), HELPER, 'groups'], env={
                'RANK': str(rank), 'WORLD_SIZE': str(n), 'OMP_NUM_THREADS': '1',
                'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(store.port),
                'TORCHELASTIC_USE_AGENT_STORE': 'True',
                'TORCHELASTIC_RESTART_COUNT': '0'}) for rank in range(n)]
            results = [finish(rank, 300) for rank in ranks]
            for rank, r in enumerate(results):
                assert r.code == 0, r
                assert 'rank %d of %d is done' % (rank, n) in r.out, r


def test_torchruns_agents_meet_at_our_server():
    with open_store() as store:
        agents = [popen([python(), '-m', 'torch.distributed.run',
                         '--rdzv-backend=c10d', '--rdzv-conf=is_host=0',
                         '--rdzv-endpoint=127.0.0.1:%d' % store.port,
                         '--rdzv-id=job', '--nnodes=2', '--nproc-per-node=2',
                         '--local-addr=127.0.0.1', HELPER, 'groups'],
                        env={'OMP_NUM_THREADS': '1'}) for _ in range(2)]
        results = [finish(agent, 300) for agent in agents]
        said = ''.join(r.out for r in results)
        for r in results:
            assert r.code == 0, r
        for rank in range(4):
            assert 'rank %d of 4 is done' % rank in said, results


# --- our client ----------------------------------------------------------------

CALLS = (
    # call, answer, answer of a threaded server where it is another
    ('set k v1', 'ok'),
    ('get k', 'v1'),
    ('set e -', 'ok'),
    ('get e', ''),
    ('add c 5', '5'),
    ('add c -7', '-2'),
    ('get c', '-2'),
    ('compare_set n - a', 'a'),
    ('compare_set n a b', 'b'),
    ('compare_set n zzz c', 'b'),
    ('compare_set m exp new', 'exp'),
    ('check k c', '1'),
    ('check k none', '0'),
    ('wait k c', 'ok'),
    ('wait k none', 'error -110 in vain for keys none'),
    ('get none', 'error -110 in vain for key none'),
    ('ping', 'ok'),
    ('num_keys', '4'),
    ('append l xy', 'ok'),
    ('append l z', 'ok'),
    ('get l', 'xyz'),
    ('multi_set a 1 b 22', 'ok'),
    ('multi_get a l b', '1 xyz 22'),
    ('multi_get a none', 'error -110 in vain for keys none'),
    ('delete k', '1'),
    ('delete k', '0'),
    ('list_keys', 'a b c e l n'),
    ('pop_now q', 'error -61 queue q is empty', 'error -95 knows no QUEUE_POP'),
    ('push q one', 'ok', 'error -95 knows no QUEUE_PUSH'),
    ('queue_len q', '1', 'error -95 knows no QUEUE_LEN'),
    ('pop q', 'one', 'error -110 in vain for key q'),
    ('barrier b1 1', 'ok'),
    ('barrier b2 2', 'error -110 in vain for 2 clients at barrier b2'),
    ('get none', 'error -110 in vain for key none'),
    ('add c 0', '-2'),
)


def our_calls(port, release):
    process = popen([prog('store_calls'), '127.0.0.1', str(port), release,
                     '500'], stdin=subprocess.PIPE)
    out, err = process.communicate('\n'.join(row[0] for row in CALLS).encode(),
                                   timeout=LONG)
    assert process.returncode == 0, (out, err)
    return out.decode().split('\n')[:-1]


def assert_calls(port, release, threaded):
    answers = our_calls(port, release)
    assert len(answers) == len(CALLS), answers
    for row, answer in zip(CALLS, answers):
        wanted = row[2] if threaded and len(row) > 2 else row[1]
        if wanted.startswith('error'):
            _, code, words = wanted.split(' ', 2)
            assert answer.startswith('error %s store 127.0.0.1 port %d: ' %
                                     (code, port)), (row, answer)
            assert words in answer, (row, answer)
        else:
            assert answer == wanted, (row, answer)


def test_our_client_of_pytorchs_servers_and_of_ours():
    with open_store() as store:
        assert_calls(store.port, 'auto', False)
    for backend in ('uv', 'threaded'):
        for release in ('2.2', 'auto'):
            with torch_server(backend) as port:
                assert_calls(port, release, backend == 'threaded')


def test_our_clients_meet_pytorchs_at_either_server():
    """Keys of one are keys of the other, waits and barriers too."""
    script = ('import sys, torch.distributed as d, datetime\n'
              's = d.TCPStore("127.0.0.1", int(sys.argv[1]), is_master=False,'
              ' timeout=datetime.timedelta(seconds=60))\n'
              'assert s.get("ours") == b"here"\n'
              's.set("theirs", "too")\n'
              's.barrier("all", 2)\n'
              'print("met")\n')

    def meet(port):
        theirs = popen([python(), '-c', script, str(port)])
        ours = popen([prog('store_calls'), '127.0.0.1', str(port), '2.2',
                      '60000'], stdin=subprocess.PIPE)
        out, _ = ours.communicate(
            b'set ours here\nget theirs\nbarrier all 2\n', timeout=LONG)
        assert out == b'ok\ntoo\nok\n', out
        r = finish(theirs)
        assert r.code == 0 and r.out == 'met\n', r

    with open_store() as store:
        meet(store.port)
    for backend in ('uv', 'threaded'):
        with torch_server(backend) as port:
            meet(port)


# --- the same random calls to both ---------------------------------------------

KEYS = ['/k%d' % i for i in range(5)]
QUEUES = ['/q%d' % i for i in range(2)]
VALUES = [b'', b'1', b'-7', b'12abc', b'value', b' 3', b'99999999999999999999']


class Both:
    """One client each of two servers, asked the same. Behind each request goes
    a PING: what comes before its answer is the request's."""

    def __init__(self, ports):
        self.ports = ports
        self.open()

    def open(self):
        self.ends = []
        self.pending = None  # keys of a WAIT or BARRIER without its answer
        for port in self.ports:
            s = socket.create_connection(('127.0.0.1', port), 30)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            s.sendall(HELLO)
            self.ends.append(s)

    def close(self):
        for s in self.ends:
            s.close()

    def reopen(self):
        self.close()
        self.open()

    def ask(self, request, nonce):
        """What each answers; None: it has closed."""
        answers = []
        fence = b'\xa5' + struct.pack('<I', nonce)[:3]
        for s in self.ends:
            got = b''
            try:
                s.sendall(request)
                s.sendall(b'\x0d' + fence)
                while not got.endswith(fence):
                    piece = s.recv(1 << 16)
                    if not piece:
                        raise EOFError
                    got += piece
                answers.append(got[:-4])
            except (OSError, EOFError):
                answers.append(None)
        return answers


def sorted_keys(reply):
    names, at = [], 8
    while at < len(reply):
        n = struct.unpack_from('<Q', reply, at)[0]
        names.append(reply[at + 8:at + 8 + n])
        at += 8 + n
    return reply[:8], sorted(names)


def keys_request(op, keys):
    return bytes([op]) + struct.pack('<Q', len(keys)) + b''.join(
        text(key) for key in keys)


class Sequence:
    """Calls chosen by a seed, sent by some clients to both servers.

    Left out, since the answers are meant to differ:
    - COMPARE_SET that stores nothing, while somebody waits: PyTorch's wakes
    - a second WAIT or BARRIER while one pends: PyTorch's keeps the old keys
    - WAIT for several keys of which one is a queue: PyTorch's counts one that
      is not empty as missing
    - a client that has been released by a push goes on with a new connection:
      PyTorch's keeps its old place in the queue
    """

    def __init__(self, seed, ports, n_clients=4):
        self.random = random.Random(seed)
        self.clients = [Both(ports) for _ in range(n_clients)]
        self.nonce = 0
        self.log = []

    def ask(self, client, request, what):
        self.nonce += 1
        self.log.append((self.clients.index(client), what))
        answers = client.ask(request, self.nonce)
        if what[0] == 'LIST_KEYS':
            answers = [a and sorted_keys(a) for a in answers]
        assert answers[0] == answers[1], (answers, self.log[-40:])
        return answers[0]

    def waiting(self, key):
        return [c for c in self.clients if c.pending and key in c.pending]

    def choose(self, client):
        r = self.random
        key, value = r.choice(KEYS), r.choice(VALUES)
        queue = r.choice(QUEUES)
        some = r.sample(KEYS, r.randint(0, 3))
        options = [
            (6, 'SET', lambda: b'\1' + text(key) + text(value)),
            (6, 'GET', lambda: b'\3' + text(key)),
            (6, 'ADD', lambda: b'\4' + text(key) + struct.pack(
                '<q', r.choice((1, -1, 0, 5, 2 ** 63 - 1)))),
            (3, 'CHECK', lambda: keys_request(5, some)),
            (2, 'GETNUMKEYS', lambda: b'\7'),
            (6, 'DELETE_KEY', lambda: b'\x08' + text(key)),
            (3, 'APPEND', lambda: b'\x09' + text(key) + text(value)),
            (3, 'MULTI_GET', lambda: keys_request(10, some)),
            (2, 'MULTI_SET', lambda: b'\x0b' + struct.pack('<Q', len(some)) +
             b''.join(text(k) + text(r.choice(VALUES)) for k in some)),
            (2, 'CANCEL_WAIT', lambda: b'\x0c'),
            (3, 'QUEUE_PUSH', lambda: b'\x0e' + text(queue) + text(value)),
            (3, 'QUEUE_POP', lambda: b'\x0f' + text(queue)),
            (2, 'QUEUE_LEN', lambda: b'\x10' + text(queue)),
            (1, 'LIST_KEYS', lambda: b'\x11'),
        ]
        if not self.waiting(key):
            options.append((4, 'COMPARE_SET', lambda: b'\2' + text(key) + text(
                r.choice(VALUES)) + text(value)))
        if client.pending is None:
            options += [
                (5, 'WAIT', lambda: keys_request(6, some)),
                (2, 'WAIT_QUEUE', lambda: keys_request(6, [queue])),
                (3, 'BARRIER', lambda: b'\x12' + text(key) + struct.pack(
                    '<q', r.choice((0, 1, 2, 3)))),
            ]
        weights = [option[0] for option in options]
        _, name, make = r.choices(options, weights)[0]
        waits_for = {'WAIT': some, 'WAIT_QUEUE': [queue],
                     'BARRIER': [key]}.get(name)
        return name, make(), waits_for

    def settle(self, client, answer):
        """After an answer with or without the byte that ends a wait."""
        if answer is None:
            client.reopen()
        elif client.pending and answer:
            if client.pending[0] in QUEUES:
                client.reopen()
            client.pending = None

    def run(self, n):
        for _ in range(n):
            client = self.random.choice(self.clients)
            name, request, waits_for = self.choose(client)
            was_pending = client.pending
            answer = self.ask(client, request, (name, request))
            if answer is None:
                client.reopen()
            elif name == 'CANCEL_WAIT':
                client.pending = None
            elif waits_for is not None:
                client.pending = None if answer else waits_for
            elif was_pending:
                # A wait of our own may have ended with this very request.
                self.settle_own(client)
            for other in self.clients:
                if other is not client and other.pending:
                    self.settle(other, self.ask(other, b'', ('PING', b'')))

    def settle_own(self, client):
        answer = self.ask(client, b'\x0c', ('CANCEL_WAIT', b'\x0c'))
        assert answer in (b'\1', b'\0\1', None), answer
        client.pending = None
        client.reopen()

    def close(self):
        for client in self.clients:
            client.close()


def test_random_calls_are_answered_as_by_pytorchs_server():
    seeds = int(os.environ.get('FLAUNCH_TEST_SEEDS', 4 if ASAN else 8))
    for seed in range(seeds):
        with torch_server('uv') as theirs, open_store() as ours:
            sequence = Sequence(seed, (theirs, ours.port))
            sequence.run(500)
            sequence.close()
