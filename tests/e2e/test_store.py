"""flaunch --store-only, its options, and what a store does with clients."""
import re
import struct
import threading

from harness import *
from store import Store, open_store, text


def is_stopped(pid):
    """Whether all threads of a process are."""
    states = []
    for task in os.listdir('/proc/%d/task' % pid):
        with open('/proc/%d/task/%s/stat' % (pid, task)) as f:
            states.append(f.read().rsplit(')', 1)[1].split()[0])
    return set(states) == {'T'}


def closed(s):
    """Whether the other end has closed, at once or soon."""
    s.settimeout(LONG)
    try:
        return s.recv(1) == b''
    except ConnectionError:
        return True


def test_the_examples_of_the_manual_are_true():
    with open(os.path.join(ROOT, 'man', 'flaunch-store.7')) as f:
        examples = re.findall(r'^\.\\" example: (.*?)\n\.EX\n(.*?)^\.EE$',
                              f.read(), re.S | re.M)
    assert len(examples) >= 10, examples
    with open_store() as store:
        for name, body in examples:
            s = store.connect()
            for line in body.replace('\n  ', ' ').splitlines():
                who, said = line[0], line[1:]
                if said == ' closed':
                    assert closed(s), name
                elif who == 'C':
                    s.sendall(bytes.fromhex(said))
                else:
                    wanted = bytes.fromhex(said)
                    got = b''
                    while len(got) < len(wanted):
                        piece = s.recv(len(wanted) - len(got))
                        assert piece, (name, line, got)
                        got += piece
                    assert got == wanted, (name, line, got.hex(' '))
            s.close()


def test_the_table_of_the_manual_is_the_one_of_the_code():
    with open(os.path.join(ROOT, 'man', 'flaunch-store.7')) as f:
        rows = re.findall(r'^([A-Z_]+)\t(\S+)\t(\S+)\t(\S+)\t', f.read(), re.M)
    with open(os.path.join(ROOT, 'common', 'store_proto.c')) as f:
        code = f.read()
    assert len(rows) == 20, rows
    for column, table in ((1, 'ops_a'), (2, 'ops_c'), (3, 'ops_d')):
        body = re.search(r'%s\[\] = \{(.*?)\}' % table, code, re.S).group(1)
        ops = re.findall(r'STORE_OP_(\w+)', body)
        manual = {row[0]: int(row[column]) for row in rows
                  if row[column] != '\\-'}
        assert manual == {op: i for i, op in enumerate(ops)}, table


def test_store_only_says_where_and_ends_with_0():
    for signo in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with open_store() as store:
            assert store.host == '127.0.0.1'
            client = store.client()
            client.set('/k', 'v')
            assert client.get('/k') == b'v'
            store.process.send_signal(signo)
            r = finish(store.process)
            assert r.code == 0 and r.out == '' and r.err == '', r
            assert closed(client.s)


def test_store_only_says_what_is_wrong():
    taken = free_port()
    with open_store('--master-port', str(taken)) as store:
        for args, code, words in (
                (['--master-port', str(taken)], 125,
                 'port %d is taken by pid %d' % (taken, store.process.pid)),
                (['--master-port', '70000'], 2, '--master-port=70000: '),
                (['--bind', 'host'], 2, 'host is no address'),
                (['--bind', '198.51.100.1'], 125, 'cannot listen on 198.51'),
                (['--legacy-dialect', '1.12'], 2, '--legacy-dialect=1.12: '),
                (['--store-max-connections', '0'], 2,
                 '--store-max-connections=0: '),
                (['--store-max-keys', '-1'], 2, '--store-max-keys=-1: '),
                (['--store-max-key-bytes', '8KB'], 2,
                 '--store-max-key-bytes=8KB: '),
                (['--store-max-value-bytes', '5G'], 2,
                 '--store-max-value-bytes=5G: '),
                (['--store-max-memory', '1K'], 2, '--store-max-memory=1K: '),
                (['--dry-run'], 2, 'excludes --dry-run'),
                (['./train'], 2, 'starts no program: ./train')):
            r = flaunch('--store-only', *args)
            assert r.code == code and words in r.err and r.out == '', (args, r)
            assert len(lines(r.err)) == 1, r


def test_a_job_checks_the_options_of_its_store():
    r = flaunch('--store-max-memory', 'much', 'true')
    assert r.code == 2 and '--store-max-memory=much: ' in r.err, r
    r = flaunch('--store-max-keys', '1', sys.executable, '-c', '''
import os, sys
sys.path.insert(0, %r)
from store import Store
s = Store('127.0.0.1', int(os.environ['MASTER_PORT']))
s.set('/a', '1')
s.set('/b', '2')
assert s.s.recv(1) == b''
''' % os.path.dirname(os.path.abspath(__file__)))
    assert r.code == 0, r
    assert 'SET: 1 keys are there already' in r.err, r
    assert '--store-max-keys' in r.err, r


def test_it_listens_where_it_is_told():
    for bind, host, reach in (('::1', '[::1]', '::1'),
                              ('127.0.0.2', '127.0.0.2', '127.0.0.2'),
                              ('0.0.0.0', socket.gethostname(), '127.0.0.1'),
                              ('::', socket.gethostname(), '127.0.0.1'),
                              ('::', socket.gethostname(), '::1')):
        with open_store('--bind', bind) as store:
            assert store.host == host, (bind, store.host)
            client = Store(reach, store.port)
            assert client.add('/n', 2) == 2


def test_it_serves_sockets_that_its_parent_left():
    for listening in (True, False):
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            if listening:
                s.listen(5)
            with open_store(fd=s.fileno()) as store:
                assert store.port == s.getsockname()[1]
                assert store.client().add('/n', 1) == 1
    with TempDir() as d, open(d + '/file', 'w') as f:
        r = program('sh', '-c', 'export LISTEN_PID=$$; exec "$0" --store-only '
                    '3<"$1"', FLAUNCH, f.name, env={'LISTEN_FDS': '1'})
        assert r.code != 0 and 'descriptor 3 is no socket' in r.err, r
    # Somebody else's.
    with open_store(env={'LISTEN_FDS': '1', 'LISTEN_PID': '1'}) as store:
        assert store.client().add('/n', 1) == 1


def test_a_limit_is_told_with_its_option():
    hello = b'\0\xce\xf7\x85\x3c'
    with open_store('--store-max-key-bytes', '64', '--store-max-value-bytes',
                    '1K', '--store-max-keys', '2', '--store-max-memory', '1M',
                    '--store-max-connections', '3') as store:
        keep = store.client()
        for request, words in (
                (b'\3' + struct.pack('<Q', 65), 'GET: a key of 65 bytes; the '
                 'limit is 64 (--store-max-key-bytes)'),
                (b'\1' + text('k') + struct.pack('<Q', 1025),
                 'SET: a value of 1025 bytes; the limit is 1024 '
                 '(--store-max-value-bytes)'),
                (b'\6' + struct.pack('<Q', 1 << 63),
                 'WAIT: 9223372036854775808 keys; the limit is 131072'),
                (b''.join(b'\1' + text('k%d' % i) + text('0') for i in range(3)),
                 'SET: 2 keys are there already, the limit (--store-max-keys)'),
                (b'\x0e' + text('q') + text(b'x' * 1000),
                 # Of the push, or of the next one, not whole yet.
                 'the store would need more than 1048576 bytes of memory '
                 '(--store-max-memory)')):
            s = store.connect()
            s.sendall(hello + request)
            while request[0] == 0x0e:
                try:
                    s.sendall(request)
                except OSError:
                    break
            assert closed(s), words
            line = store.process.stderr.readline().decode()
            assert line.startswith('flaunch: store: the client at 127.0.0.1:')
            assert words in line, (words, line)
            s.close()
            assert keep.add('k0', 0) >= 0
        more = [store.client() for _ in range(2)]
        s = store.connect()
        assert closed(s)
        assert ('there are 3 already (--store-max-connections)' in
                store.process.stderr.readline().decode())
        for client in more:
            assert client.add('k0', 0) >= 0


def test_other_users_are_turned_away():
    if os.getuid() != 0:
        raise Skip('not as an ordinary user: it cannot become another')
    child = '''
import os, socket, sys
''.encode('idna')
os.setgid(%d); os.setuid(%d)
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
s.sendall(bytes.fromhex('00cef7853c07'))
try: print(len(s.recv(8)))
except OSError: print(0)
'''

    def answered(port, uid):
        r = program(sys.executable, '-c', child % (uid, uid), str(port))
        return r.out == '8\n'

    def as_user(uid):
        os.setgid(uid)
        os.setuid(uid)

    with TempDir() as d:
        shutil.copy(FLAUNCH, d)
        for own, uid, allowed in ((0, 0, True), (0, 65534, False),
                                  (65534, 65534, True), (65534, 0, True),
                                  (65534, 1, False)):
            with open_store(program=d + '/flaunch',
                            preexec_fn=lambda: as_user(own)) as store:
                assert answered(store.port, uid) == allowed, (own, uid)
                if not allowed:
                    line = store.process.stderr.readline().decode()
                    assert 'cut off: it is of user %d' % uid in line, line
    # Where all can reach it anyway, all may come.
    with open_store('--bind', '0.0.0.0') as store:
        assert answered(store.port, 65534)


def test_a_worker_that_is_another_user_is_ours():
    if os.getuid() != 0:
        raise Skip('not as an ordinary user: it cannot become another')
    child = '''
import os, socket
''.encode('idna')
os.setgid(65534); os.setuid(65534)
s = socket.create_connection(('127.0.0.1', int(os.environ['MASTER_PORT'])))
s.sendall(bytes.fromhex('00cef7853c07'))
assert len(s.recv(8)) == 8
'''
    r = flaunch('--nproc_per_node', '2', sys.executable, '-c', child)
    assert r.code == 0 and not own_lines(r), r


def test_a_client_that_has_gone_is_nobodys():
    """The kernel says root of a socket whose process has closed it."""
    with open_store() as store:
        store.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: is_stopped(store.process.pid), 'a stop')
        s = store.connect()
        s.sendall(bytes.fromhex('00cef7853c') + b'\1' + text('/k') + text('v'))
        s.close()
        store.process.send_signal(signal.SIGCONT)
        line = store.process.stderr.readline().decode()
        assert 'cut off: its process has gone' in line, line
        client = store.client()
        client.s.sendall(b'\7')
        assert client.read(8) == bytes(8)


def test_no_name_is_looked_up():
    with TempDir() as d:
        log = d + '/strace'
        # Leaks cannot be looked for in a process that is traced.
        with open_store(program=['strace', '-f', '-e', 'trace=openat,connect',
                                 '-o', log, FLAUNCH],
                        env={'ASAN_OPTIONS': 'detect_leaks=0'}) as store:
            clients = [store.client() for _ in range(50)]
            for client in clients:
                assert client.add('/n', 1) > 0
            # strace would let it go on.
            (own, _), = children_of(store.process.pid)
            os.kill(own, signal.SIGTERM)
            assert finish(store.process).code == 0
        with open(log) as f:
            calls = f.read()
        started = calls.rindex('libc.so') if 'libc.so' in calls else 0
        assert 'connect(' not in calls, calls
        assert not re.search(r'resolv|nsswitch|/etc/hosts|nscd',
                             calls[started:]), calls


def test_half_a_client_is_answered():
    with open_store() as store:
        s = store.connect()
        s.sendall(bytes.fromhex('00cef7853c') + b'\1' + text('/k') + text('v') +
                  b'\3' + text('/k') + b'\6' + struct.pack('<Q', 1) +
                  text('/never'))
        s.shutdown(socket.SHUT_WR)
        got = b''
        while True:
            piece = s.recv(100)
            if not piece:
                break
            got += piece
        assert got == struct.pack('<Q', 1) + b'v', got


def test_half_a_client_of_1_13_is_answered():
    """No value can follow its key any more: it is a DELETE_KEY."""
    with open_store() as store:
        s = store.connect()
        s.sendall(b'\0' + text('/k') + text('v') + b'\x08' + text('/k'))
        s.shutdown(socket.SHUT_WR)
        got = b''.join(iter(lambda: s.recv(100), b''))
        assert got == struct.pack('<Q', 1), got


def test_a_client_that_reads_late_gets_everything():
    with open_store() as store:
        client = store.client()
        n, size = 200, 500000
        client.set('/k', b'x' * size)
        done = threading.Event()

        def ask():
            client.s.sendall((b'\3' + text('/k')) * n)
            client.s.shutdown(socket.SHUT_WR)
            done.set()
        threading.Thread(target=ask).start()
        assert done.wait(LONG)
        other = store.client()
        assert other.add('/n', 1) == 1
        total = 0
        while True:
            piece = client.s.recv(1 << 20)
            if not piece:
                break
            total += len(piece)
        assert total == n * (8 + size), total


def test_a_restart_gets_an_empty_store():
    with TempDir() as d:
        r = flaunch('--max-restarts', '1', '--restart-backoff', '0',
                    sys.executable, '-c', '''
import os, sys
sys.path.insert(0, %r)
from store import Store
s = Store('127.0.0.1', int(os.environ['MASTER_PORT']))
s.s.sendall(b'\\7')
assert s.read(8) == bytes(8)
s.set('/k', 'old')
sys.exit(os.environ['TORCHELASTIC_RESTART_COUNT'] == '0')
''' % os.path.dirname(os.path.abspath(__file__)), cwd=d)
    assert r.code == 0, r


def test_work_is_shared_out_by_the_example():
    for n in (1, 3):
        r = flaunch('--nproc_per_node=%d' % n, example('store'), '30')
        assert r.code == 0, r
        shares = [int(x) for x in re.findall(r'^rank \d: (\d+) pieces$', r.out,
                                             re.M)]
        assert len(shares) == n and sum(shares) == 30, r
