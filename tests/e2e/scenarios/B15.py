"""Not all nodes join; everybody is told for whom it waits."""
import re

from hosts import *


def test_the_missing_node_is_named():
    with Hosts(1) as h:
        begin = time.monotonic()
        r = finish(h.start(0, '--nnodes=2', '--node-rank=0',
                           '--master-addr=127.0.0.1', '--join-timeout=2', 'true'))
        assert time.monotonic() - begin < 20
    assert r.code == 124, r
    assert 'not all nodes have joined in 2 s: 1 of 2 nodes here (0: h0); ' \
        'missing: 1' in r.err, r


def test_every_node_that_came_prints_the_same_list():
    with Hosts(3) as h:
        ps = [h.start(i, '--nnodes=4', '--node-rank=%d' % rank,
                      '--master-addr=h0', '--join-timeout=12', 'true')
              for i, rank in ((0, 0), (1, 2))]
        results = h.finish_all(ps)
    assert codes(results) == [124, 124], results
    for r in results:
        # About every ten seconds, and at the end.
        assert '2 of 4 nodes here (0: h0, 2: h1); missing: 1, 3; 2 s left' in \
            r.err, r
        assert 'not all nodes have joined in 12 s: 2 of 4 nodes here (0: h0, ' \
            '2: h1); missing: 1, 3\n' in r.err, r


def test_who_cannot_reach_node_0_says_why():
    with Hosts(2) as h:
        r = finish(h.start(1, '--nnodes=2', '--node-rank=1', '--master-addr=h0',
                           '--join-timeout=3', 'true'))
    assert r.code == 124, r
    assert re.search(r'could not join the host node at h0:29500 in 3 s: '
                     r'Connection refused \(\d+ tries\)', r.err), r
