"""Ctrl-C ends every wait for other nodes."""
from hosts import *

# It is to take a second; a test waits ten.
LIMIT = 10


def interrupted(process, words):
    """Interrupt it when it says that it waits."""
    text = ''
    while words not in text:
        line = process.stderr.readline().decode()
        assert line, text
        text += line
    process.send_signal(signal.SIGINT)
    r = finish(process, LIMIT)
    assert r.code == 130, r
    return r


def listens(h, i):
    wait_until(lambda: ':29500' in h.script('ss -Hltn', i), 'a listener')


def two_of_three(h):
    """Two that have met and wait for a third."""
    ps = [h.start(i, '--nnodes=3', '--node-rank=%d' % i, '--master-addr=h0',
                  'true', env={'FLAUNCH_DEBUG': 'detail'}) for i in range(2)]
    line = ''
    while 'joined the host node' not in line:
        line = ps[1].stderr.readline().decode()
        assert line
    return ps


def test_node_0_alone():
    with Hosts(1) as h:
        p = h.start(0, '--nnodes=2', '--node-rank=0', 'true')
        listens(h, 0)
        p.send_signal(signal.SIGINT)
        r = finish(p, LIMIT)
    assert r.code == 130, r


def test_all_who_have_joined_hear_of_it():
    for victim in (0, 1):
        with Hosts(3) as h:
            ps = two_of_three(h)
            ps[victim].send_signal(signal.SIGINT)
            results = [finish(p, LIMIT) for p in ps]
        assert codes(results) == [130, 130], results
        for r in results:
            assert 'SIGINT on h%d' % victim in r.err, r


def test_a_refused_connection():
    with Hosts(2) as h:
        interrupted(h.start(1, '--nnodes=2', '--node-rank=1',
                            '--master-addr=h0', 'true'), 'Connection refused')


def test_an_address_that_leads_nowhere():
    with Hosts(1) as h:
        h.script('ip route add 198.51.100.0/24 via 10.77.0.250', 0)
        p = h.start(0, '--nnodes=2', '--node-rank=1',
                    '--master-addr=198.51.100.1', 'true')
        wait_until(lambda: 'SYN-SENT' in h.script('ss -Htn state syn-sent; '
                                                  'ss -tan', 0), 'a try')
        p.send_signal(signal.SIGINT)
        r = finish(p, LIMIT)
    assert r.code == 130, r


def test_a_resolver_that_hangs():
    with Hosts(1) as h:
        conf = h.dir + '/resolv.conf'
        with open(conf, 'w') as f:
            f.write('nameserver 127.0.0.1\noptions timeout:30 attempts:5\n')
        h.script('mount --bind %s /etc/resolv.conf' % conf, 0)
        silent = h.popen(0, sys.executable, '-c',
                         'import socket, time\n'
                         's = socket.socket(type=socket.SOCK_DGRAM)\n'
                         's.bind(("127.0.0.1", 53)); print("ready", flush=True)\n'
                         'time.sleep(1000)\n')
        silent.stdout.readline()
        r = interrupted(h.start(0, '--nnodes=2', '--master-addr=slow.example',
                                'true'), 'looking up slow.example takes long')
        assert 'SIGINT' in r.err, r


def test_node_0_is_stopped_while_it_is_waited_for():
    """It will not answer, and a second Ctrl-C does not wait for it."""
    with Hosts(3) as h:
        ps = two_of_three(h)
        ps[0].send_signal(signal.SIGSTOP)
        ps[1].send_signal(signal.SIGINT)
        ps[1].send_signal(signal.SIGINT)
        time.sleep(0.2)
        ps[1].send_signal(signal.SIGINT)
        r = finish(ps[1], LIMIT)
        assert r.code == 130, r
        ps[0].send_signal(signal.SIGCONT)
        ps[0].terminate()
        finish(ps[0])
