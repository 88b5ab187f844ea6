"""Workers start before the master's DNS name exists."""
from hosts import *


def test_a_name_that_appears_late_and_then_moves():
    with Hosts(2) as h:
        text = h.hosts_text()
        args = ['--nnodes=2', '--master-addr=m0', '--join-timeout=60']
        joiner = h.start(1, *args, '--node-rank=1', 'sh', '-c', 'echo $RANK')
        line = joiner.stderr.readline().decode()
        assert 'cannot look up m0: ' in line, line
        # First it points to a machine that does not host, then to the right one.
        h.set_hosts(1, text + '10.77.0.2 m0\n')
        line = joiner.stderr.readline().decode()
        assert 'Connection refused' in line or 'look up' in line, line
        h.set_hosts(1, text + '10.77.0.1 m0\n')
        host = h.start(0, *args, '--node-rank=0', 'sh', '-c', 'echo $RANK')
        results = h.finish_all([host, joiner])
    assert codes(results) == [0, 0], results
    assert ranks_said(results) == ['0', '1'], results


def test_mistakes_that_time_does_not_mend_fail_at_once():
    for args, words in ((['--master-addr=a b'], '--master-addr=a b: give'),
                        (['--master-addr=m0', '--master-port=0'],
                         '--master-port=0: several nodes need a port')):
        r = flaunch('--nnodes=2', '--node-rank=1', *args, 'true')
        assert r.code == 2 and words in r.err, r
