"""Impossible port numbers are refused, and one that needs root is named."""
from scenario import *


def test_only_ports_are_ports():
    for port in ('65536', '66660', '-1', '29500x', '', ' 29500', '0x7000',
                 '2e4', '99999999999999999999'):
        r = flaunch('--master-port=' + port, 'touch', '/nonexistent/ran')
        assert r.code == 2 and len(lines(r.err)) == 1, (port, r)
        assert '--master-port=%s:' % port in r.err, (port, r)
    r = flaunch('--master-port=65535', 'sh', '-c', 'echo $MASTER_PORT')
    assert r.code == 0 and r.out == '65535\n', r


def test_a_privileged_port_is_named():
    with open('/proc/sys/net/ipv4/ip_unprivileged_port_start') as f:
        first = int(f.read())
    args = [FLAUNCH, '--master-port=80', 'true']
    if os.getuid() == 0:
        args = ['setpriv', '--reuid=65534', '--clear-groups',
                '--inh-caps=-all'] + args
    if first <= 80:
        # Everybody may have it here: then it works.
        r = program(*args)
        assert r.code in (0, 125), r
        return
    r = program(*args)
    assert r.code == 125, r
    assert 'port 80 needs root: choose one above %d' % (first - 1) in r.err, r
