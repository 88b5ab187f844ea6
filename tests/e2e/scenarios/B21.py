"""Rank 0 leaves first and nobody else sees a network failure."""
from hosts import *

PROGRAM = ('import os, time\n'
           'from store import Store\n'
           'if os.environ["RANK"] == "0": raise SystemExit\n'
           's = Store(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))\n'
           'end = time.monotonic() + 2\n'
           'n = 0\n'
           'while time.monotonic() < end:\n'
           '    s.set("k%d" % n, "v")\n'
           '    s.wait("k%d" % n)\n'
           '    assert s.get("k%d" % n) == b"v"\n'
           '    n += 1; time.sleep(0.01)\n'
           'print("done")\n')
ENV = {'PYTHONPATH': os.path.join(ROOT, 'tests', 'e2e')}


def test_on_one_node():
    r = flaunch('--nproc_per_node=2', '--no-python', sys.executable, '-c',
                PROGRAM, env=ENV)
    assert r.code == 0 and r.out == 'done\n', r


def test_on_two_nodes():
    with Hosts(2) as h:
        results = h.finish_all(h.start_all('--no-python', sys.executable, '-c',
                                           PROGRAM, env=ENV))
    assert codes(results) == [0, 0], results
    assert ranks_said(results) == ['done'], results
