"""The exit status is the first failed worker's."""
from scenario import *


def test_codes_are_passed_on():
    for script, code in (('exit 3', 3), ('ulimit -c 0; kill -SEGV $$', 139),
                         ('test $RANK = 0 || exit 42', 42), ('exit 0', 0)):
        r = flaunch('--nproc_per_node=2', 'sh', '-c', script)
        assert r.code == code, r
    assert flaunch('no-such-program').code == 127
