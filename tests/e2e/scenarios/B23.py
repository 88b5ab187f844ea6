"""Lines of several ranks are never woven together."""
from scenario import *


def test_every_line_is_whole_and_in_order():
    script = ('import os, sys\n'
              'r = os.environ["RANK"]\n'
              'for i in range(20000):\n'
              '    sys.stdout.write("%s:%d:%s\\n" % (r, i, "abcd"[int(r)] * 200))\n')
    for args in ([], ['--log-prefix=']):
        r = flaunch(*args, '--nproc-per-node=4', sys.executable, '-c', script,
                    env={'PYTHONUNBUFFERED': '', 'OMP_NUM_THREADS': '1'})
        assert r.code == 0 and r.err == '', r.err
        at = [0] * 4
        for line in lines(r.out):
            m = re.fullmatch(r'(\d):(\d+):(.)\3{199}', line)
            assert m, line
            rank = int(m.group(1))
            assert int(m.group(2)) == at[rank], line
            at[rank] += 1
        assert at == [20000] * 4, at


def test_a_line_of_megabytes_goes_out_in_marked_pieces():
    r = flaunch('--nproc-per-node=2', sys.executable, '-c',
                'import os; os.write(1, os.environ["RANK"].encode() * 3000000 + b"\\n")',
                env={'OMP_NUM_THREADS': '1'})
    assert r.code == 0, r.err
    assert r.out.count('0') == 3000000 and r.out.count('1') == 3000000
    for line in lines(r.out):
        assert re.fullmatch(r'(0+|1+)( \[\.\.\.\])?', line), line[-20:]
        assert len(line) <= 65536 + 6, len(line)
