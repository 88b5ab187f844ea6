#!/usr/bin/env python3
"""The example's training in Python: with ranks of the C example in one job.

Odd ranks become the C program; even ones load libflaunch with ctypes and do the
same sums in numpy. mixed.py LIBFLAUNCH TRAIN DATA; prints what the example does.
"""
import ctypes
import os
import sys

import numpy as np

PIXELS, HIDDEN, CLASSES, BATCH, EPOCHS = 64, 48, 10, 64, 30
W1 = 0
B1 = W1 + PIXELS * HIDDEN
W2 = B1 + HIDDEN
B2 = W2 + HIDDEN * CLASSES
PARAMS = B2 + CLASSES
F = np.float32


class Error(ctypes.Structure):
    _fields_ = [('domain', ctypes.c_int), ('code', ctypes.c_int),
                ('text', ctypes.c_char * 1024)]


class Options(ctypes.Structure):
    """As far as it is needed: a library takes a shorter struct."""
    _fields_ = [('size', ctypes.c_size_t), ('dist_backend', ctypes.c_char_p)]


class Job:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.job = ctypes.c_void_p()
        self.error = Error()
        options = Options(ctypes.sizeof(Options), b'gloo')
        self.check(self.lib.flaunch_init(ctypes.byref(self.job),
                                         ctypes.byref(options),
                                         ctypes.byref(self.error)))
        self.rank = self.lib.flaunch_rank(self.job)
        self.world_size = self.lib.flaunch_world_size(self.job)

    def check(self, rc):
        if rc < 0:
            sys.exit(self.error.text.decode())

    def all_reduce(self, data):
        self.check(self.lib.flaunch_all_reduce(
            self.job, data.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(data.size), 0, 0, ctypes.byref(self.error)))

    def finalize(self):
        self.lib.flaunch_finalize(self.job)


class Random:
    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return F(self.state >> 8) / F(16777216) - F(0.5)


def shuffled(data):
    order = list(range(len(data)))
    random = Random(1)
    for i in range(len(data) - 1, 0, -1):
        j = int((random.next() + F(0.5)) * F(i + 1))
        order[i], order[j] = order[j], order[i]
    return data[order]


def forward(p, x):
    hidden = np.maximum(x @ p[W1:B1].reshape(PIXELS, HIDDEN) + p[B1:W2], 0)
    out = hidden @ p[W2:B2].reshape(HIDDEN, CLASSES) + p[B2:PARAMS]
    out = np.exp(out - out.max(axis=1, keepdims=True))
    return hidden, out / out.sum(axis=1, keepdims=True)


def backward(p, x, labels):
    """The gradient of all samples, and the sum of their losses behind it."""
    hidden, out = forward(p, x)
    grad = np.zeros(PARAMS + 1, F)
    rows = np.arange(len(labels))
    grad[PARAMS] = -np.log(np.maximum(out[rows, labels], F(1e-12))).sum()
    out[rows, labels] -= 1
    back = (out @ p[W2:B2].reshape(HIDDEN, CLASSES).T) * (hidden > 0)
    grad[W1:B1] = (x.T @ back).ravel()
    grad[B1:W2] = back.sum(axis=0)
    grad[W2:B2] = (hidden.T @ out).ravel()
    grad[B2:PARAMS] = out.sum(axis=0)
    return grad


def main():
    library, train, path = sys.argv[1:]
    if int(os.environ['RANK']) % 2 == 1:
        os.execv(train, [train, path])
    data = shuffled(np.loadtxt(path, delimiter=',', dtype=F))
    x, labels = data[:, :PIXELS] / F(16), data[:, PIXELS].astype(int)
    n_train = len(data) - len(data) // 5
    job = Job(library)
    random = Random(7)
    p = np.array([random.next() * F(0.2 if i < B1 else 0.3)
                  for i in range(PARAMS)], F)
    speed = np.zeros(PARAMS, F)
    batches = n_train // BATCH
    for epoch in range(1, EPOCHS + 1):
        loss = 0.0
        for batch in range(batches):
            mine = slice(batch * BATCH + job.rank, (batch + 1) * BATCH,
                         job.world_size)
            grad = backward(p, x[mine], labels[mine])
            job.all_reduce(grad)
            speed = F(0.9) * speed + grad[:PARAMS] / F(BATCH)
            p = p - F(0.1) * speed
            loss += grad[PARAMS] / BATCH
        if job.rank == 0:
            print('epoch %d loss %.5f' % (epoch, loss / batches), flush=True)
    if job.rank == 0:
        best = forward(p, x[n_train:])[1].argmax(axis=1)
        print('accuracy %.4f' % (best == labels[n_train:]).mean(), flush=True)
    job.finalize()


if __name__ == '__main__':
    main()
