"""Clients that lie, stall, flood and vanish: the others are served, and memory
stays within its limit. What it costs the others in time is measured in
tests/bench/store.py."""
import resource
import struct

from harness import *
from store import open_store, text

HELLO = bytes.fromhex('00cef7853c')
MEMORY = 64 << 20


def limits():
    """As many descriptors as we may have."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def peak_of(pid):
    with open('/proc/%d/status' % pid) as f:
        return int(re_line(f.read(), 'VmHWM')) << 10


def re_line(status, name):
    return [line.split()[1] for line in status.splitlines()
            if line.startswith(name + ':')][0]


class Watched:
    """A store with a small limit, and honest clients that use it."""

    def __init__(self, store, n=50):
        self.store = store
        self.clients = [store.client() for _ in range(n)]
        self.before = peak_of(store.process.pid)
        self.rounds = 0

    def use(self):
        """Every client asks something, and gets the right answer."""
        self.rounds += 1
        for i, client in enumerate(self.clients):
            assert client.add('/honest', 1) == (
                (self.rounds - 1) * len(self.clients) + i + 1)

    def check(self):
        self.use()
        assert self.store.process.poll() is None
        if not ASAN:
            grown = peak_of(self.store.process.pid) - self.before
            # The limit counts what is kept; malloc has its own part, and one
            # request or reply under way.
            assert grown < 1.5 * MEMORY, grown


def watched(**kwargs):
    return open_store('--store-max-memory', str(MEMORY), **kwargs)


def closed(s):
    """Whether the other end closes; what it says before is read."""
    s.settimeout(LONG)
    try:
        while s.recv(1 << 16):
            pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def quietly_send(s, data):
    """Send while the other end takes it, for a while at most."""
    s.settimeout(2)
    try:
        s.sendall(data)
        return True
    except OSError:
        return False


def connect_many(store, n):
    found = []
    for _ in range(n):
        s = socket.create_connection(('127.0.0.1', store.port), LONG)
        found.append(s)
    return found


def test_ten_thousand_half_open_connections():
    n = min(10000, limits() // 2 - 200)
    with watched() as store:
        w = Watched(store)
        half = []
        for _ in range(n // 500):
            for s in connect_many(store, 500):
                s.sendall(b'\0')
                half.append(s)
            w.use()
        w.check()
        # They are given up after a while; a silent one never is.
        silent = store.connect()
        assert closed(half[0]) and closed(half[-1])
        silent.sendall(HELLO + b'\7')
        assert len(silent.recv(8)) == 8
        w.check()
        for s in half:
            s.close()


def test_a_byte_at_a_time():
    with watched() as store:
        w = Watched(store)
        slow = connect_many(store, 200)
        request = HELLO + b'\1' + text('/slow') + text(b'v' * 20) + b'\7'
        for at in range(len(request)):
            for s in slow:
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                s.sendall(request[at:at + 1])
            if at % 10 == 0:
                w.use()
        for s in slow:
            assert s.recv(8) == struct.pack('<Q', 2)
        w.check()


def test_lengths_without_bytes():
    string_first = (1, 2, 3, 4, 8, 9, 14, 15, 16, 18)
    count_first = (5, 6, 10, 11)
    with watched() as store:
        w = Watched(store)
        for length in (1 << 17 | 1, 1 << 31, 1 << 32, 1 << 40, 1 << 63,
                       (1 << 64) - 1):
            for op in string_first + count_first:
                s = store.connect()
                s.sendall(HELLO + bytes([op]) + struct.pack('<Q', length))
                assert closed(s), (op, length)
            for op in (1, 2, 9, 14):
                s = store.connect()
                s.sendall(HELLO + bytes([op]) + text('/k') +
                          struct.pack('<Q', max(length, 8 << 20 | 1)))
                assert closed(s), (op, length)
        # As long as may be, and nothing behind it.
        waiting = []
        for _ in range(100):
            s = store.connect()
            s.sendall(HELLO + b'\1' + text('/k') + struct.pack('<Q', 8 << 20))
            waiting.append(s)
        w.check()


def test_floods_of_keys_queues_and_waits():
    def flood(make):
        s = store.connect()
        s.sendall(HELLO)
        for i in range(0, 100000000, 100):
            if not quietly_send(s, b''.join(make(j) for j in
                                            range(i, i + 100))):
                break
        assert closed(s)

    for make in (lambda i: b'\1' + text('/flood/%d' % i) + text(b'x' * 2000),
                 lambda i: b'\x0e' + text('/q') + text(b'x' * 2000),
                 lambda i: b'\x09' + text('/long') + text(b'x' * 4000)):
        with watched() as store:
            w = Watched(store)
            w.use()
            flood(make)
            w.check()
            assert '--store-max-memory' in store.process.stderr.readline(
            ).decode()


def test_waits_for_very_many_keys():
    with watched() as store:
        w = Watched(store)
        w.use()
        n_cut = 0
        waiters = []
        for i in range(12):
            s = store.connect()
            keys = b''.join(text('/%d/%d' % (i, j)) for j in range(100000))
            if not quietly_send(s, HELLO + b'\6' + struct.pack('<Q', 100000) +
                                keys):
                n_cut += 1
            waiters.append(s)
            w.use()
        for s in waiters:
            s.close()
        w.check()


def test_replies_that_nobody_reads():
    with watched() as store:
        w = Watched(store)
        client = store.client()
        client.set('/big', b'x' * (1 << 20))
        assert client.get('/big') == b'x' * (1 << 20)
        deaf = []
        for _ in range(30):
            s = store.connect()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            quietly_send(s, HELLO + (b'\3' + text('/big')) * 2000)
            deaf.append(s)
            w.use()
        w.check()
        for s in deaf:
            s.close()
        assert client.get('/big') == b'x' * (1 << 20)


def test_scanners_and_other_protocols():
    with watched() as store:
        w = Watched(store)
        for _ in range(3000):
            socket.create_connection(('127.0.0.1', store.port)).close()
        for hello in (b'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
                      bytes.fromhex('1603010200010001fc0303') + b'\x55' * 500,
                      b'SSH-2.0-OpenSSH_9.2\r\n', b'\xff' * 1000,
                      b'*1\r\n$4\r\nPING\r\n', b'FLCH\1\0\0\0'):
            for _ in range(20):
                s = store.connect()
                quietly_send(s, hello)
                assert closed(s), hello
        w.check()


def test_clients_that_vanish():
    reset = struct.pack('ii', 1, 0)
    with watched() as store:
        w = Watched(store)
        for what in (HELLO, HELLO + b'\6' + struct.pack('<Q', 1) + text('/w'),
                     HELLO + b'\1' + text('/half')[:-2],
                     HELLO + b'\x12' + text('/b') + struct.pack('<q', 1000000)):
            for s in connect_many(store, 300):
                s.sendall(what)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                s.close()
            w.use()
        client = store.client()
        client.set('/w', 'now')
        assert client.get('/w') == b'now'
        w.check()


def test_more_clients_than_descriptors():
    """They are turned away, and told so, instead of waiting for ever."""
    with open_store(program=['sh', '-c', 'ulimit -n 1100; exec "$0" "$@"',
                             FLAUNCH]) as store:
        inside = [store.client() for _ in range(900)]
        outside = [store.connect() for _ in range(400)]
        n_closed = 0
        for s in outside[-50:]:
            n_closed += closed(s)
        assert n_closed == 50
        line = store.process.stderr.readline().decode()
        assert 'no more descriptors (ulimit -n)' in line, line
        for client in inside[::50]:
            assert client.add('/n', 1) > 0
        for s in outside:
            s.close()
        for client in inside[:200]:
            client.s.close()
        again = wait_until(lambda: try_client(store), 'room for a client')
        assert again.add('/n', 0) > 0


def try_client(store):
    client = store.client()
    try:
        client.add('/n', 0)
        return client
    except (OSError, EOFError):
        return None
