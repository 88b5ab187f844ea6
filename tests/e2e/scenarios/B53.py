"""No flag of a descriptor that others share is ever changed."""
import fcntl
from scenario import *


def flags(fd):
    return fcntl.fcntl(fd, fcntl.F_GETFL)


def test_the_terminals_flags_stay():
    master, slave = pty.openpty()
    before = flags(slave)
    p = start(['--nproc-per-node=2', sys.executable, '-c',
               'import fcntl, os, time\n'
               'assert not fcntl.fcntl(1, fcntl.F_GETFL) & os.O_NONBLOCK\n'
               'assert not fcntl.fcntl(2, fcntl.F_GETFL) & os.O_NONBLOCK\n'
               'os.write(1, b"ready\\n"); time.sleep(0.2)'],
              stdin=slave, stdout=slave, stderr=slave)
    seen = b''
    while seen.count(b'ready') < 2:
        seen += os.read(master, 4096)
        assert flags(slave) == before
    assert p.wait(LONG) == 0
    assert flags(slave) == before
    os.close(slave)
    os.close(master)


def test_a_pipe_that_comes_non_blocking_loses_nothing():
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, fcntl.F_SETFL, flags(write_end) | os.O_NONBLOCK)
    before = flags(write_end)
    p = start(['--nproc-per-node=2', sys.executable, '-c',
               'import os\n'
               'line = os.environ["RANK"] * 99 + "\\n"\n'
               'for i in range(5000): os.write(1, line.encode())'],
              stdout=write_end, env={'OMP_NUM_THREADS': '1'})
    time.sleep(0.5)  # a slow reader: the pipe fills
    assert flags(write_end) == before
    os.close(write_end)
    got = b''
    while True:
        data = os.read(read_end, 65536)
        if not data:
            break
        got += data
    os.close(read_end)
    assert p.wait(LONG) == 0
    assert sorted(lines(got.decode())) == ['0' * 99] * 5000 + ['1' * 99] * 5000
    p.stderr.close()
