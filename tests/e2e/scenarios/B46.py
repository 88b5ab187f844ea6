"""Rank 0 is on the master node, and ranks are the same in every run."""
from hosts import *

COUNTS = {0: 1, 1: 3, 2: 2}


def test_three_nodes_of_different_size_in_any_order():
    with Hosts(3) as h:
        for _ in range(10):
            ps = [h.start(i, '--nnodes=3', '--node-rank=%d' % i,
                          '--master-addr=h0', '--nproc-per-node=%d' % COUNTS[i],
                          'sh', '-c', 'echo $(hostname) $RANK $WORLD_SIZE '
                          '$LOCAL_WORLD_SIZE') for i in (2, 0, 1)]
            results = h.finish_all(ps)
            assert codes(results) == [0, 0, 0], results
            assert ranks_said(results) == [
                'h0 0 6 1', 'h1 1 6 3', 'h1 2 6 3', 'h1 3 6 3', 'h2 4 6 2',
                'h2 5 6 2'], results


def test_ranks_stay_after_a_restart():
    with Hosts(3) as h:
        results = h.finish_all([
            h.start(i, '--nnodes=3', '--rdzv-endpoint=h1', '--max-restarts=1',
                    '--restart-backoff=0', 'sh', '-c',
                    'echo $FLAUNCH_ATTEMPT $RANK $(hostname); '
                    'test $FLAUNCH_ATTEMPT = 1 || test $RANK != 2 || '
                    '{ sleep 0.5; exit 1; }; '
                    'test $FLAUNCH_ATTEMPT = 1 || exec sleep 100')
            for i in range(3)])
    assert codes(results) == [0, 0, 0], results
    assert ranks_said(results) == [
        '%d %s' % (a, who) for a in (0, 1) for who in ('0 h1', '1 h0', '2 h2')
    ], results
