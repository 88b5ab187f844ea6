"""Progress bars: \\r is kept and ends a piece, and nothing is added."""
from scenario import *

BAR = ('import sys, time\n'
       'for i in range(101):\n'
       '    sys.stderr.write("\\r%d%%" % i); sys.stderr.flush()\n'
       '    time.sleep(0.002)\n')
WANTED = ''.join('\r%d%%' % i for i in range(101))


def test_files_get_the_bytes_and_the_screen_the_whole_bar():
    with TempDir() as d:
        r = flaunch('-t2', '--log-dir', d, '--nproc-per-node=2',
                    sys.executable, '-c', BAR, env={'OMP_NUM_THREADS': '1'})
        assert r.code == 0, r
        for rank in '01':
            with open('%s/latest/attempt_0/%s/stderr.log' % (d, rank), 'rb') as f:
                assert f.read().decode() == WANTED
            assert '[default%s]:100%%' % rank in r.err, r.err[-200:]
        # One newline at most: before a rank that follows an unfinished line.
        assert r.err.count('\n') <= 1, repr(r.err[-300:])


def test_without_a_prefix_each_bar_arrives_byte_for_byte():
    r = flaunch(sys.executable, '-c', BAR)
    assert r.err == WANTED, repr(r.err[-200:])
    r = flaunch('--nproc-per-node=2', sys.executable, '-c', BAR,
                env={'OMP_NUM_THREADS': '1'})
    assert r.err.count('100%') == 2, repr(r.err[-200:])
    assert r.err.replace('\n', '').count('\r') == 202, r.err
