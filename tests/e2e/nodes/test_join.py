"""Nodes that join: ranks, places, refusals, patience."""
from hosts import *

SAY = ['sh', '-c', 'echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE '
       '$GROUP_RANK/$GROUP_WORLD_SIZE $MASTER_ADDR:$MASTER_PORT']


def test_two_nodes_have_ranks_and_one_address():
    with Hosts(2) as h:
        results = h.finish_all(h.start_all('--nproc_per_node=2', *SAY))
    assert codes(results) == [0, 0], results
    assert ranks_said(results) == [
        '%d/4 %d/2 %d/2 10.77.0.1:29500' % (r, r % 2, r // 2)
        for r in range(4)], results


def test_eight_nodes_with_different_counts():
    counts = [1, 3, 2, 1, 4, 1, 2, 1]
    with Hosts(8) as h:
        processes = [h.start(i, '--nnodes=8', '--node-rank=%d' % i,
                             '--master-addr=h0', '--nproc-per-node=%d' % counts[i],
                             *SAY) for i in (3, 0, 7, 1, 6, 2, 5, 4)]
        results = h.finish_all(processes)
    want, rank = [], 0
    for node, count in enumerate(counts):
        for local in range(count):
            want.append('%d/15 %d/%d %d/8 h0:29500'
                        % (rank, local, count, node))
            rank += 1
    assert codes(results) == [0] * 8, results
    assert ranks_said(results) == sorted(want), results


def test_without_ranks_the_address_says_who_hosts():
    """By c10d's options: the node that has the address hosts, and is first."""
    with Hosts(3) as h:
        results = h.finish_all([
            h.start(i, '--nnodes=3', '--rdzv-backend=c10d', '--rdzv-id=j',
                    '--rdzv-endpoint=h1', 'sh', '-c',
                    'echo $RANK $(hostname) $MASTER_ADDR:$MASTER_PORT '
                    '$TORCHELASTIC_RUN_ID') for i in range(3)])
    assert codes(results) == [0, 0, 0], results
    assert ranks_said(results) == ['0 h1 h1:29400 j', '1 h0 h1:29400 j',
                                   '2 h2 h1:29400 j'], results


def test_two_agents_on_the_host_of_the_address():
    """Who binds first hosts; the other one joins."""
    with Hosts(1) as h:
        results = h.finish_all([
            h.start(0, '--nnodes=2', '--rdzv-endpoint=h0', *SAY)
            for _ in range(2)])
    assert codes(results) == [0, 0], results
    assert ranks_said(results) == ['0/2 0/1 0/2 h0:29400',
                                   '1/2 0/1 1/2 h0:29400'], results


def test_over_ipv6():
    with Hosts(2) as h:
        results = h.finish_all([
            h.start(i, '--nnodes=2', '--node-rank=%d' % i,
                    '--master-addr=[%s]' % h.addr6(0), 'sh', '-c',
                    'echo $RANK $MASTER_ADDR $FLAUNCH_STORE')
            for i in range(2)])
    assert codes(results) == [0, 0], results
    assert ranks_said(results) == ['0 fd77::1 [fd77::1]:29500',
                                   '1 fd77::1 [fd77::1]:29500'], results


def test_where_no_address_is_given_it_is_the_one_that_was_reached():
    with Hosts(2) as h:
        a = h.start(0, '--nnodes=2', '--node-rank=0', *SAY)
        b = h.start(1, '--nnodes=2', '--node-rank=1', '--master-addr=h0', *SAY)
        results = h.finish_all([a, b])
    assert codes(results) == [0, 0], results
    assert ranks_said(results) == ['0/2 0/1 0/2 10.77.0.1:29500',
                                   '1/2 0/1 1/2 10.77.0.1:29500'], results


def test_bind_narrows_the_port_to_an_address():
    with Hosts(2) as h:
        p = h.start(0, '--nnodes=2', '--node-rank=0', '--bind=10.77.0.1',
                    '--join-timeout=60', 'true')
        wait_until(lambda: '29500' in h.script('ss -ltn', 0), 'a listener')
        listening = h.script('ss -ltn', 0)
        assert '10.77.0.1:29500' in listening, listening
        assert '*:29500' not in listening, listening
        q = h.start(1, '--nnodes=2', '--node-rank=1', '--master-addr=h0', 'true')
        results = h.finish_all([p, q])
    assert codes(results) == [0, 0], results


def test_a_late_node_is_waited_for():
    with Hosts(2) as h:
        a = h.start(1, '--nnodes=2', '--node-rank=1', '--master-addr=h0', *SAY)
        # It says that it waits, and goes on.
        line = a.stderr.readline().decode()
        assert 'cannot join the host node at h0:29500 yet: Connection refused' \
            in line, line
        b = h.start(0, '--nnodes=2', '--node-rank=0', '--master-addr=h0', *SAY)
        results = h.finish_all([a, b])
    assert codes(results) == [0, 0], results


def refused(*pairs, words):
    """Arguments of the host node and of one that does not belong to it."""
    host, other = pairs
    with Hosts(2) as h:
        a = h.start(0, *host, '--join-timeout=3', 'true')
        wait_until(lambda: '29' in h.script('ss -Hltn', 0), 'a listener')
        r = finish(h.start(1, *other, 'true'))
        assert r.code == 125, r
        assert words in r.err, r
        r = finish(a)
        assert r.code == 124, r
        assert words in r.err, r  # both sides hear why
        assert 'not all nodes have joined in 3 s: 1 of ' in r.err, r


def test_another_job_id_is_refused_with_both_named():
    refused(['--nnodes=2', '--rdzv-endpoint=h0', '--rdzv-id=mine'],
            ['--nnodes=2', '--rdzv-endpoint=h0', '--rdzv-id=yours'],
            words='this is a node of job yours (--rdzv-id, on h1), and at h0 '
            'runs job mine')


def test_another_number_of_nodes_is_refused_with_both_named():
    refused(['--nnodes=2', '--node-rank=0'],
            ['--nnodes=3', '--node-rank=1', '--master-addr=h0'],
            words='h1 was started with --nnodes=3, and h0 with --nnodes=2')


def test_two_agents_with_one_node_rank():
    with Hosts(3) as h:
        args = ['--nnodes=3', '--master-addr=h0', '--join-timeout=4']
        a = h.start(0, *args, '--node-rank=0', 'true')
        b = h.start(1, *args, '--node-rank=1', 'true')
        wait_until(lambda: 'ESTAB' in h.script('ss -tn', 0), 'a connection')
        c = finish(h.start(2, *args, '--node-rank=1', 'true'))
        assert c.code == 125, c
        assert 'h2 has node rank 1, and so has h1: give each node its own ' \
            '--node-rank' in c.err, c
        results = h.finish_all([a, b])
    assert codes(results) == [124, 124], results
    for r in results:
        assert 'not all nodes have joined in 4 s: 2 of 3 nodes here (0: h0, ' \
            '1: h1); missing: 2' in r.err, r


def test_a_port_that_is_something_elses():
    """HTTP, and a PyTorch store's silence; the joiner names what it saw."""
    server = ('import socket,sys\n'
              's = socket.create_server(("", 29500))\n'
              'print("ready", flush=True)\n'
              'while True:\n'
              '    c = s.accept()[0]\n'
              '    if sys.argv[1]:\n'
              '        c.recv(8); c.sendall(sys.argv[1].encode())\n'
              '    c.close()\n')
    for said, words in (
            ('HTTP/1.1 400 Bad Request\r\n\r\n',
             'something else than flaunch answers there: it said "HTTP/1.1 400 '
             'Bad Request"'),
            ('', 'it closed the connection without a word, as something else '
             'than flaunch would')):
        with Hosts(2) as h:
            s = h.popen(0, sys.executable, '-c', server, said)
            s.stdout.readline()
            r = finish(h.start(1, '--nnodes=2', '--node-rank=1',
                               '--master-addr=h0', '--join-timeout=2', 'true'))
            assert r.code == 124, r
            assert 'could not join the host node at h0:29500' in r.err, r
            assert words in r.err, r
            r = finish(h.start(0, '--nnodes=2', '--node-rank=0', 'true'))
            assert r.code == 125, r
            assert 'port 29500 is taken by ' in r.err, r
            assert 'pid %d' % s.pid in r.err or 'process %d' % s.pid in r.err, r


def test_garbage_on_the_port_disturbs_nothing():
    noise = ('import socket,os\n'
             'for i in range(200):\n'
             '    try:\n'
             '        c = socket.create_connection(("h0", 29500), 2)\n'
             '        c.sendall((b"FLCH" if i % 2 else b"") + os.urandom(64))\n'
             '        c.close()\n'
             '    except OSError: pass\n')
    with Hosts(2) as h:
        a = h.start(0, '--nnodes=2', '--node-rank=0', *SAY)
        wait_until(lambda: '29500' in h.script('ss -ltn', 0), 'a listener')
        assert finish(h.popen(1, sys.executable, '-c', noise)).code == 0
        b = h.start(1, '--nnodes=2', '--node-rank=1', '--master-addr=h0', *SAY)
        results = h.finish_all([a, b])
    assert codes(results) == [0, 0], results


def test_a_flaunch_of_another_version_is_told():
    old = ('import socket,struct\n'
           's = socket.create_server(("", 29500))\n'
           'print("ready", flush=True)\n'
           'while True:\n'
           '    c = s.accept()[0]\n'
           '    c.recv(8); c.sendall(b"FLCH" + struct.pack("<I", 77))\n'
           '    c.recv(1)\n')
    with Hosts(2) as h:
        s = h.popen(0, sys.executable, '-c', old)
        s.stdout.readline()
        r = finish(h.start(1, '--nnodes=2', '--node-rank=1', '--master-addr=h0',
                           '--join-timeout=2', 'true'))
    assert r.code == 125, r
    assert 'its flaunch speaks version 77 of our protocol, and this one ' \
        'version 1: use one release on all nodes' in r.err, r


def test_two_jobs_share_hosts_on_two_ports():
    with Hosts(2) as h:
        jobs = []
        for port in (29500, 29600):
            jobs += h.start_all('--master_port=%d' % port, *SAY)
        results = h.finish_all(jobs)
    assert codes(results) == [0] * 4, results
    assert ranks_said(results) == sorted(
        '%d/2 0/1 %d/2 10.77.0.1:%d' % (r, r, port)
        for r in (0, 1) for port in (29500, 29600)), results


def test_roles_are_counted_over_nodes():
    with Hosts(2) as h:
        results = h.finish_all([
            h.start(i, '--nnodes=2', '--node-rank=%d' % i, '--master-addr=h0',
                    '--nproc-per-node=2', '--role=%s' % role, 'sh', '-c',
                    'echo $RANK $ROLE_NAME $ROLE_RANK/$ROLE_WORLD_SIZE')
            for i, role in enumerate(('a', 'b'))])
    assert ranks_said(results) == ['0 a 0/2', '1 a 1/2', '2 b 0/2', '3 b 1/2']


def test_libflaunch_over_two_nodes():
    """The example trains; two nodes get the losses of one."""
    one = flaunch('--nproc_per_node=4', example('train'),
                  os.path.join(ROOT, 'worker/examples/digits.csv'))
    assert one.code == 0, one
    with Hosts(2) as h:
        results = h.finish_all(h.start_all(
            '--nproc_per_node=2', example('train'),
            os.path.join(ROOT, 'worker/examples/digits.csv')))
    assert codes(results) == [0, 0], results

    def losses(text):
        return [line for line in lines(text) if 'loss' in line]
    assert losses(results[0].out) == losses(one.out) != [], (results, one)
