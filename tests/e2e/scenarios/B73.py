"""RANK and WORLD_SIZE of outside are no input."""
from scenario import *


def test_outer_values_are_replaced():
    r = flaunch('--nproc_per_node=2', 'sh', '-c', 'echo $RANK/$WORLD_SIZE',
                env={'RANK': '5', 'WORLD_SIZE': '9', 'PET_NNODES': '1'})
    assert sorted(lines(r.out)) == ['0/2', '1/2'], r
    r = flaunch('--nproc_per_node=2', FLAUNCH, '--nproc_per_node=2', 'sh', '-c',
                'echo $RANK/$WORLD_SIZE')
    assert sorted(lines(r.out)) == ['0/2', '0/2', '1/2', '1/2'], r
    r = flaunch('--explain', 'true', env={'PET_NPROC_PER_NODE': '3',
                                          'FLAUNCH_OPT_NPROC_PER_NODE': '2'})
    assert '--nproc-per-node=2, from FLAUNCH_OPT_NPROC_PER_NODE' in r.out, r
