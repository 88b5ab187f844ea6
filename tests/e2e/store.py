"""A store of our own, and a small client of it: what tests ask, no more."""
import contextlib
import os
import socket
import struct


def text(data):
    """A string as it is on the wire."""
    data = data.encode() if isinstance(data, str) else data
    return struct.pack('<Q', len(data)) + data


class Store:
    """A client."""

    def __init__(self, host, port):
        self.s = socket.create_connection((host, port), 10)
        self.s.sendall(b'\0' + struct.pack('<I', 0x3C85F7CE))

    def read(self, n):
        data = b''
        while len(data) < n:
            piece = self.s.recv(n - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def set(self, key, value):
        self.s.sendall(b'\1' + text(key) + text(value))

    def get(self, key):
        self.wait(key)
        self.s.sendall(b'\3' + text(key))
        return self.read(struct.unpack('<Q', self.read(8))[0])

    def add(self, key, n):
        self.s.sendall(b'\4' + text(key) + struct.pack('<q', n))
        return struct.unpack('<q', self.read(8))[0]

    def wait(self, key):
        self.s.sendall(b'\6' + struct.pack('<Q', 1) + text(key))
        self.read(1)


class OpenStore:
    """A flaunch --store-only that runs."""

    def __init__(self, process):
        self.process = process
        line = process.stdout.readline().decode()
        self.host, port = line.rstrip('\n').rsplit(':', 1)
        self.port = int(port)

    def connect(self):
        s = socket.create_connection(('127.0.0.1', self.port), 60)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def client(self):
        return Store('127.0.0.1', self.port)


@contextlib.contextmanager
def open_store(*args, program=None, fd=None, env=None, **kwargs):
    """fd: a socket that it is to inherit."""
    from harness import FLAUNCH, end_all_of, popen
    argv = program if isinstance(program, list) else [program or FLAUNCH]
    argv = argv + ['--store-only', *args]
    if fd is not None:
        argv = ['sh', '-c', 'export LISTEN_PID=$$ LISTEN_FDS=1; '
                'exec "$@" 3<&%d' % fd, 'sh'] + argv
        kwargs['pass_fds'] = [fd]
    process = popen(argv, env=env, **kwargs)
    try:
        yield OpenStore(process)
    finally:
        end_all_of([process])
