"""Two jobs on one machine do not fight over a port."""
from scenario import *


def test_two_jobs_run_at_once():
    a = start(['--nproc_per_node=2', 'sleep', '1'])
    b = flaunch('--nproc_per_node=2', 'sleep', '0.2')
    assert b.code == 0, b
    assert finish(a).code == 0


def test_a_port_that_is_taken_is_told_with_its_holder():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        s.listen()
        begin = time.monotonic()
        r = flaunch('--master-port=%d' % s.getsockname()[1], 'true')
        assert time.monotonic() - begin < 10, 'ten times the second it may take'
        assert r.code == 125, r
        assert 'port %d is taken by' % s.getsockname()[1] in r.err, r
        assert str(os.getpid()) in r.err and 'choose another' in r.err, r
