"""A time limit takes the way of a stop."""
from scenario import *


def test_the_limit_leaves_nothing():
    r = flaunch('--timeout=0.5', '--nproc_per_node=2', 'sh', '-c',
                'sleep 100 & wait')
    assert r.code == 124 and '--timeout=0.5 is over' in r.err, r
