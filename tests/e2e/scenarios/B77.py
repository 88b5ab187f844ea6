"""The last words of every rank arrive, prefix or not."""
from scenario import *


def test_a_last_line_without_newline_is_shown_each_time():
    for i in range(30 if ASAN else 100):
        r = flaunch('--nproc-per-node=8', '--log-prefix=[${rank}] ', 'sh', '-c',
                    'printf "last-%s" $RANK', env={'OMP_NUM_THREADS': '1'})
        assert r.code == 0 and r.err == '', r
        assert sorted(r.out.split('\n')) == [
            '[%d] last-%d' % (k, k) for k in range(8)], r


def test_a_worker_that_fails_is_read_to_its_end():
    r = flaunch('--nproc-per-node=2', sys.executable, '-c',
                'import os; os.write(1, b"z" * 1000000); os._exit(1)',
                env={'OMP_NUM_THREADS': '1'})
    # The other rank may be stopped before it has written everything.
    assert r.code == 1 and 1000000 <= r.out.count('z') <= 2000000, r.err
    script = ('import os, time; os.write(1, b"z" * 1000000)\n'
              'open(os.environ["D"] + os.environ["RANK"], "w")\n'
              'while len(os.listdir(os.environ["D"])) < 2: time.sleep(.01)\n'
              'os._exit(1)')
    with TempDir() as d:
        r = flaunch('--nproc-per-node=2', sys.executable, '-c', script,
                    env={'OMP_NUM_THREADS': '1', 'D': d + '/'})
    assert r.code == 1 and r.out.count('z') == 2000000, r.out.count('z')
