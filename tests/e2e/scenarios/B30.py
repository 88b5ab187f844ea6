"""Interfaces with the same address on every host lead nobody astray."""
from hosts import *


def test_a_bridge_address_that_every_host_has():
    with Hosts(2) as h:
        for i in range(2):
            h.script('ip link add docker0 type bridge && '
                     'ip addr add 172.17.0.1/16 dev docker0 && '
                     'ip link set docker0 up', i)
        a = h.start(0, '--nnodes=2', '--node-rank=0', 'sh', '-c',
                    'echo $RANK $MASTER_ADDR')
        b = h.start(1, '--nnodes=2', '--node-rank=1', '--master-addr=h0', 'sh',
                    '-c', 'echo $RANK $MASTER_ADDR')
        results = h.finish_all([a, b])
    assert codes(results) == [0, 0], results
    # The address that was really reached, not the first interface's.
    assert ranks_said(results) == ['0 10.77.0.1', '1 10.77.0.1'], results


def test_the_host_may_name_another_address():
    with Hosts(2) as h:
        h.script('ip addr add 10.77.0.100/24 dev eth0', 0)
        a = h.start(0, '--nnodes=2', '--node-rank=0',
                    '--local-addr=10.77.0.100', 'sh', '-c',
                    'echo $RANK $MASTER_ADDR')
        b = h.start(1, '--nnodes=2', '--node-rank=1',
                    '--master-addr=10.77.0.1', 'sh', '-c',
                    'echo $RANK $MASTER_ADDR')
        results = h.finish_all([a, b])
    assert codes(results) == [0, 0], results
    assert ranks_said(results) == ['0 10.77.0.100', '1 10.77.0.100'], results
