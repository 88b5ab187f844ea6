"""A node dies and the rest neither hang nor spin."""
from hosts import *

# T, and what a test waits at most: ten times T and the grace.
T = 2
LIMIT = 10 * (T + 1)


def three(fault, lost_by_host, codes_wanted):
    with Hosts(3) as h:
        ps = h.start_all('--heartbeat-timeout=%d' % T, '--shutdown-timeout=1',
                         'sleep', '100')
        for p in ps:
            wait_until(lambda p=p: '(sleep)' in [n for _, n in
                                                 left_behind(p.token)],
                       'a worker')
        fault(h, ps)
        results = [finish(p, LIMIT) for p in ps if p is not ps[2]]
        wait_until(lambda: '(sleep)' not in
                   [n for p in ps for _, n in left_behind(p.token)],
                   'an end of all workers', LIMIT)
        ps[2].send_signal(signal.SIGCONT)
        results += h.finish_all([ps[2]])
    assert codes(results) == codes_wanted, results
    for r in results[:2]:
        assert 'lost node 2 (h2): ' + lost_by_host in r.err, r


def test_its_agent_is_killed():
    three(lambda h, ps: ps[2].kill(), 'its connection was closed',
          [125, 125, -9])


def test_its_agent_is_stopped():
    three(lambda h, ps: ps[2].send_signal(signal.SIGSTOP),
          'nothing was heard of it for %d s' % T, [125, 125, 125])


def test_its_packets_are_dropped():
    three(lambda h, ps: h.cut(2), 'nothing was heard of it for %d s' % T,
          [125, 125, 125])


def test_its_link_is_down():
    three(lambda h, ps: h.unplug(2), 'nothing was heard of it for %d s' % T,
          [125, 125, 125])


def test_node_0_is_lost():
    with Hosts(3) as h:
        ps = h.start_all('--heartbeat-timeout=%d' % T, '--max-restarts=3',
                         'sleep', '100')
        for p in ps:
            wait_until(lambda p=p: '(sleep)' in [n for _, n in
                                                 left_behind(p.token)],
                       'a worker')
        h.cut(0)
        results = [finish(p, LIMIT) for p in ps[1:]]
        ps[0].terminate()
        ps[0].terminate()
        finish(ps[0])
        for p in ps:
            assert_nothing_left(p.token)
    assert codes(results) == [125, 125], results
    for r in results:
        assert 'lost the host node h0 (10.77.0.1:29500): it has not answered ' \
            'for %d s' % T in r.err, r
