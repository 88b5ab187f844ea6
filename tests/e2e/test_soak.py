"""Many spawns leave no trace in agent or guard: `make soak` for a million."""
import re
import subprocess

from harness import *

WORKERS = 16
SPAWNS = int(os.environ.get('FLAUNCH_TEST_SPAWNS', 1600 if ASAN else 16000))
# Allocators need a while until they have what they keep.
GROWTH_KIB = 1024


def looks(pid):
    """Open descriptors, and private memory in KiB."""
    with open('/proc/%d/smaps_rollup' % pid) as f:
        rollup = f.read()
    private = sum(int(n) for n in re.findall(r'^Private_\w+:\s+(\d+)', rollup,
                                             re.M))
    return len(os.listdir('/proc/%d/fd' % pid)), private


def test_neither_descriptors_nor_memory_grow():
    attempts = SPAWNS // WORKERS
    p = start(['--nproc-per-node=%d' % WORKERS, '--restart-backoff=0',
               '--max-restarts=%d' % (attempts - 1), 'sh', '-c',
               'echo out; echo err >&2; exit 3'],
              stdout=subprocess.DEVNULL, env={'OMP_NUM_THREADS': '1'})
    early = late = None
    n = 0
    for line in p.stderr:
        m = re.match(rb'flaunch: .*; restart (\d+) of', line)
        if not m:
            continue
        n = int(m.group(1))
        # Not at the very end: it may be over before its line is read.
        if n == attempts // 5 or n == attempts * 9 // 10:
            guard = guard_of(p.pid)
            found = looks(p.pid), looks(guard)
            early, late = (found, late) if early is None else (early, found)
    assert p.wait(LONG) == 3 and n == attempts - 1, n
    p.stderr.close()
    for name, (fds, kib), (fds_late, kib_late) in zip(
            ('agent', 'guard'), early, late):
        print('%d spawns: %s has %d, then %d descriptors; %d, then %d KiB' % (
            SPAWNS, name, fds, fds_late, kib, kib_late))
        # The streams of an attempt come and go.
        assert fds_late <= fds + 2 * WORKERS, (name, fds, fds_late)
        assert ASAN or kib_late <= kib + GROWTH_KIB, (name, kib, kib_late)
