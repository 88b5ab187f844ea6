"""The first failure of any rank stops the others."""
from scenario import *


def test_the_last_ranks_failure_stops_the_first():
    begin = time.monotonic()
    r = flaunch('--nproc_per_node=4', 'sh', '-c',
                '[ $RANK = 3 ] && { sleep 0.2; exit 5; }; exec sleep 600')
    assert r.code == 5 and 'rank 3 ' in r.err, r
    assert time.monotonic() - begin < 50
