"""A small client of the store: what tests ask of it, and no more."""
import socket
import struct


class Store:
    def __init__(self, host, port):
        self.s = socket.create_connection((host, port), 10)
        self.s.sendall(b'\0' + struct.pack('<I', 0x3C85F7CE))

    def bytes(self, data):
        data = data.encode() if isinstance(data, str) else data
        return struct.pack('<Q', len(data)) + data

    def read(self, n):
        data = b''
        while len(data) < n:
            piece = self.s.recv(n - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def set(self, key, value):
        self.s.sendall(b'\1' + self.bytes(key) + self.bytes(value))

    def get(self, key):
        self.wait(key)
        self.s.sendall(b'\3' + self.bytes(key))
        return self.read(struct.unpack('<Q', self.read(8))[0])

    def add(self, key, n):
        self.s.sendall(b'\4' + self.bytes(key) + struct.pack('<q', n))
        return struct.unpack('<q', self.read(8))[0]

    def wait(self, key):
        self.s.sendall(b'\6' + struct.pack('<Q', 1) + self.bytes(key))
        self.read(1)
