"""Some ranks end well and others go on: said, and limited on request."""
from scenario import *


def test_the_others_are_named_after_half_a_minute():
    r = flaunch('--nproc_per_node=3', 'sh', '-c',
                'test $RANK = 1 && exit 0; sleep 32')
    assert r.code == 0, r
    assert own_lines(r) == ['flaunch: the first rank ended 30 s ago; still '
                            'running: rank 0, 2'], r


def test_a_limit_turns_it_into_a_failure():
    r = flaunch('--max-spread=0.5', '--nproc_per_node=2', 'sh', '-c',
                'test $RANK = 0 && exit 0; exec sleep 100')
    assert r.code == 124, r
    assert '--max-spread=0.5 is over and rank 1 still runs' in r.err, r
