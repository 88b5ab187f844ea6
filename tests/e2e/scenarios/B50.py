"""A daemon holds the pipe: the end of a worker is its exit."""
from scenario import *


def test_a_daemon_that_holds_the_pipe_does_not_delay_the_end():
    begin = time.monotonic()
    r = flaunch('--nproc-per-node=2', 'sh', '-c',
                'setsid sleep 300 & echo done', env={'OMP_NUM_THREADS': '1'})
    assert r.code == 0 and r.out == 'done\n' * 2 and r.err == '', r
    assert time.monotonic() - begin < 30  # ten times the 3 s


def test_a_daemon_may_be_kept_by_name():
    token = new_token()
    p = start(['--nproc-per-node=2', '--keep-processes=sleep', 'sh', '-c',
                'setsid sleep 300 & '
                'while ! grep -q sleep /proc/$!/comm; do sleep 0.01; done; '
                'setsid tail -f /dev/null & echo done'],
              token=token, env={'OMP_NUM_THREADS': '1'})
    out = p.stdout.readline() + p.stdout.readline()
    assert p.wait(LONG) == 0 and out == b'done\n' * 2, out
    left = left_behind(token)
    assert [name for _, name in left] == ['(sleep)'] * 2, left
    for pid, _ in left:
        os.kill(pid, signal.SIGKILL)
    assert_nothing_left(token)
    p.stdout.close()
    p.stderr.close()


def test_a_worker_that_closes_its_output_has_not_ended():
    for args in ([], ['--nproc-per-node=2']):
        begin = time.monotonic()
        r = flaunch(*args, 'sh', '-c', 'exec >&- 2>&-; sleep 1; exit 4',
                    env={'OMP_NUM_THREADS': '1'})
        assert r.code == 4, r
        assert time.monotonic() - begin >= 1
