"""The grace period is what the user says."""
from scenario import *


DEAF = ['bash', '-c', "trap '' TERM; echo up; while :; do sleep 0.1; done"]


def stopped(*options, again=False):
    token = new_token()
    p = start([*options, *DEAF], token=token)
    assert p.stdout.readline() == b'up\n'
    begin = time.monotonic()
    p.terminate()
    if again:
        assert b'stopping' in p.stderr.readline()
        p.terminate()
    r = finish(p)
    assert_nothing_left(token)
    return r, time.monotonic() - begin


def test_the_kill_comes_after_the_grace_and_is_announced():
    r, seconds = stopped('--shutdown-timeout=1')
    assert r.code == 143 and seconds >= 0.9, (r, seconds)
    assert 'SIGKILL in 1 s' in r.err, r


def test_a_second_term_means_now():
    r, seconds = stopped('--shutdown-timeout=600', again=True)
    assert r.code == 143 and seconds < 60, (r, seconds)


def test_a_worker_that_saves_has_its_time_and_no_more():
    token = new_token()
    with TempDir() as d:
        p = start(['--shutdown-timeout=600', 'bash', '-c',
                   'trap "sleep 0.5; echo saved > %s/file; exit 0" TERM; '
                   'echo up; while :; do sleep 0.1; done' % d], token=token)
        assert p.stdout.readline() == b'up\n'
        p.terminate()
        r = finish(p)
        assert r.code == 0, r
        with open(d + '/file') as f:
            assert f.read() == 'saved\n'
    assert_nothing_left(token)
