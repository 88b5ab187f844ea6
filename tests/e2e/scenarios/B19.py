"""Arguments arrive byte for byte."""
from scenario import *


def test_arguments_are_bytes():
    script = ('import sys; print([a.encode("utf8", "surrogateescape") '
              'for a in sys.argv[1:]])')
    args = [b'a b', b'', b"I'm", b'72" tall', b'$HOME', b'x\ny', b'\xff', b'*',
            b';', b"'", b'y' * 100000]
    ours = flaunch('python3', '-c', script, *args)
    plain = program('python3', '-c', script, *args)
    assert ours.code == 0 and ours.out == plain.out, ours
