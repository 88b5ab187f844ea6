"""A full disk is named; only the worker whose own file it is fails."""
from scenario import *


def test_a_full_screen_is_said_once_and_the_job_goes_on():
    with TempDir() as d, open('/dev/full', 'wb') as full:
        r = flaunch('-t1', '--log-dir', d, '--nproc-per-node=2', 'seq', '20000',
                    stdout=full, env={'OMP_NUM_THREADS': '1'})
        assert r.code == 0, r
        said = [l for l in own_lines(r) if 'No space left on device' in l]
        assert len(said) == 1 and 'stdout' in said[0], r
        assert re.search(r'lost: \d+ bytes of stdout: No space left', r.err), r
        for rank in '01':
            with open('%s/latest/attempt_0/%s/stdout.log' % (d, rank)) as f:
                assert f.read() == ''.join('%d\n' % i for i in range(1, 20001))


def test_a_full_log_disk_fails_the_worker_and_is_named():
    with TempDir() as d:
        r = flaunch_on_disk(d, 'size=64k', '-r1', '--log-dir', d,
                            sys.executable, '-c', 'print("x" * 1000000)')
        assert r.code != 0, r
        assert 'No space left on device' in r.err, r
        assert re.search(r'the disk of .*/stdout\.log is full', r.err), r
