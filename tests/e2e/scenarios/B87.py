"""Nothing in an argument is substituted."""
from scenario import *


def test_dollars_stay():
    text = 'a$$b ${local_rank} $HOME %d \\n'
    r = flaunch('--nproc_per_node=2', 'printf', '%s\n', text)
    assert lines(r.out) == [text] * 2, r
