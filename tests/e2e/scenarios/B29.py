"""Both families are tried, whatever a name gives."""
from hosts import *


def pair(h, addr, prepare=lambda h: None):
    prepare(h)
    results = h.finish_all([
        h.start(i, '--nnodes=2', '--node-rank=%d' % i, '--master-addr=' + addr,
                '--join-timeout=20', 'sh', '-c', 'echo $RANK') for i in range(2)])
    assert codes(results) == [0, 0], (addr, results)
    assert ranks_said(results) == ['0', '1'], (addr, results)


def test_literal_addresses():
    for addr in ('10.77.0.1', 'fd77::1', '[fd77::1]'):
        with Hosts(2) as h:
            pair(h, addr)


def test_loopback_of_either_family():
    for addr in ('::1', '127.0.0.1', '[::1]'):
        with Hosts(1) as h:
            results = h.finish_all([
                h.start(0, '--nnodes=2', '--node-rank=%d' % i,
                        '--master-addr=' + addr, 'sh', '-c', 'echo $RANK')
                for i in range(2)])
        assert codes(results) == [0, 0], (addr, results)


def test_a_name_with_one_family_only():
    for line in ('10.77.0.1 m0\n', 'fd77::1 m0\n'):
        with Hosts(2) as h:
            for i in range(2):
                h.set_hosts(i, '127.0.0.1 localhost\n' + line)
            pair(h, 'm0')


def test_a_name_whose_first_address_does_not_answer():
    with Hosts(2) as h:
        for i in range(2):
            h.set_hosts(i, 'fd77::99 m0\n10.77.0.1 m0\n')
        pair(h, 'm0')


def test_without_ipv6():
    with Hosts(2) as h:
        for i in range(2):
            h.script('sysctl -qw net.ipv6.conf.all.disable_ipv6=1', i)
        pair(h, 'h0')
