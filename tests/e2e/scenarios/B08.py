"""The program's arguments are the user's alone."""
from scenario import *


def test_nothing_is_added_to_argv():
    r = flaunch('--nproc_per_node=2', 'python3', '-c',
                'import os, sys; os.write(1, b"%s\\n" % str(sys.argv).encode())',
                'a', 'b')
    assert r.code == 0 and lines(r.out) == ["['-c', 'a', 'b']"] * 2, r
