"""Start over a file:// that all see. The page wants a name made of job and
attempt; the issue wants PyTorch's format, in which both can meet, so a stale
file is told by the token in it, which no store has any more."""
from scenario import *


def rank(i, n, path, *args, **kwargs):
    return popen([prog('init'), 'dist_url=file://' + path, *args], env={
        'RANK': str(i), 'WORLD_SIZE': str(n), 'LOCAL_RANK': str(i),
        'LOCAL_WORLD_SIZE': str(n)}, **kwargs)


def assert_whole(processes):
    n = len(processes)
    for i, r in enumerate([finish(p) for p in processes]):
        assert r.code == 0 and r.out.startswith('env %d/%d ' % (i, n)), r


def test_ranks_meet_and_the_last_removes_the_file():
    with TempDir() as d:
        assert_whole([rank(i, 3, d + '/f') for i in range(3)])
        assert os.listdir(d) == []


def test_a_file_of_a_crashed_run_is_never_used():
    with TempDir() as d:
        # Rank 1 never comes: rank 0 is killed with its address in the file.
        p = rank(0, 2, d + '/f')
        wait_until(lambda: os.path.exists(d + '/f') and
                   b'flaunch-address' in open(d + '/f', 'rb').read(), 'address')
        p.kill()
        finish(p)
        late = rank(1, 2, d + '/f', 'timeout_ms=60000')
        time.sleep(0.3)  # time to read the old address, and be led nowhere
        assert_whole([rank(0, 2, d + '/f', 'timeout_ms=60000'), late])


def test_eight_readers_may_come_before_the_writer():
    with TempDir() as d:
        readers = [rank(i, 9, d + '/f') for i in range(1, 9)]
        wait_until(lambda: os.path.exists(d + '/f'), 'file')
        time.sleep(0.2)
        assert_whole([rank(0, 9, d + '/f')] + readers)


def test_what_cannot_be_used_is_told_at_once():
    with TempDir() as d:
        r = finish(rank(0, 2, d + '/none/f'))
        assert r.code == 1 and 'No such file or directory' in r.out, r
        with open(d + '/other', 'w') as f:
            f.write('these are not records')
        r = finish(rank(0, 2, d + '/other'))
        assert r.code == 1 and 'is no FileStore' in r.out, r
        if os.geteuid() == 0:
            os.chown(d + '/other', 65534, 65534)
            r = finish(rank(0, 2, d + '/other'))
            assert r.code == 1 and 'belongs to another user' in r.out, r


def test_a_rank_0_that_never_comes_is_told_in_time():
    with TempDir() as d:
        r = finish(rank(1, 2, d + '/f', 'timeout_ms=500'))
        assert r.code == 1 and 'rank 0 left nothing there' in r.out, r
