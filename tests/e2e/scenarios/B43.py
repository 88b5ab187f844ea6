"""The number of restarts is the number asked for."""
from scenario import *


def test_exactly_n_restarts():
    for n in (0, 1, 2):
        r = flaunch('--nproc_per_node=2', '--max-restarts=%d' % n,
                    '--restart-backoff=0', 'sh', '-c',
                    'test $RANK = 0 || exec sleep 100; '
                    'echo $TORCHELASTIC_RESTART_COUNT; exit 6')
        assert r.code == 6, r
        assert lines(r.out) == [str(i) for i in range(n + 1)], r
