"""Ids of jobs: two jobs are not mixed up, and an id can be used again."""
from hosts import *


def test_the_same_id_twice_in_a_row():
    with Hosts(2) as h:
        for _ in range(3):
            results = h.finish_all([
                h.start(i, '--nnodes=2', '--rdzv-backend=c10d',
                        '--rdzv-endpoint=h0', '--rdzv-id=x', 'sh', '-c',
                        'echo $RANK $TORCHELASTIC_RUN_ID') for i in range(2)])
            assert codes(results) == [0, 0], results
            assert ranks_said(results) == ['0 x', '1 x'], results


def test_a_node_of_another_job_is_refused_and_does_no_harm():
    with Hosts(3) as h:
        ps = [h.start(i, '--nnodes=2', '--rdzv-endpoint=h0', '--rdzv-id=x', 'sh',
                      '-c', 'echo ready; sleep 2') for i in range(2)]
        for p in ps:
            p.stdout.readline()
        begin = time.monotonic()
        r = finish(h.start(2, '--nnodes=2', '--rdzv-endpoint=h0', '--rdzv-id=y',
                           'true'))
        assert time.monotonic() - begin < 10
        assert r.code == 125, r
        assert 'this is a node of job y (--rdzv-id, on h2), and at h0 runs job ' \
            'x' in r.err, r
        results = h.finish_all(ps)
    assert codes(results) == [0, 0], results
