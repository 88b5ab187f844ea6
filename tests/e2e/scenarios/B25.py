"""Finished nodes wait as long as it takes, and bad news ends the wait."""
from hosts import *


def test_early_nodes_wait_longer_than_the_heartbeat_time():
    for late in (0, 1):
        with Hosts(2) as h:
            results = h.finish_all(h.start_all(
                '--heartbeat-timeout=2', 'sh', '-c',
                'test $RANK != %d || sleep 6' % late))
        assert codes(results) == [0, 0], results
        for r in results:
            assert 'lost' not in r.err, r


def test_a_failure_ends_the_wait_of_those_who_are_done():
    with Hosts(2) as h:
        ps = h.start_all('sh', '-c', 'test $RANK = 0 && sleep 1 && exit 3; '
                         'exit 0')
        results = h.finish_all(ps, 50)
    assert codes(results) == [3, 3], results
    assert 'rank 0 on h0 (pid' in results[1].err, results
