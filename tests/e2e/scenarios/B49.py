"""A worker deaf to TERM does not block the restart."""
from scenario import *


def test_the_old_attempt_is_gone_before_the_next():
    with TempDir() as d:
        r = flaunch('--nproc_per_node=2', '--max-restarts=1',
                    '--restart-backoff=0', '--shutdown-timeout=0.5', 'sh', '-c',
                    'if [ $FLAUNCH_ATTEMPT = 1 ]; then '
                    '  kill -0 $(cat %s/pid) 2>/dev/null && exit 9; exit 0; '
                    'fi; '
                    'if [ $RANK = 0 ]; then trap "" TERM; echo $$ > %s/new; '
                    '  mv %s/new %s/pid; sleep 100; sleep 100; fi; '
                    'while [ ! -e %s/pid ]; do sleep 0.01; done; exit 1'
                    % (d, d, d, d, d))
        assert r.code == 0, r
        assert 'rank 1 ' in r.err and 'restart 1 of 1' in r.err, r
