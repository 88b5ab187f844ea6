"""The launcher leaves the shell's input alone."""
from scenario import *


def test_a_loop_over_lines_runs_for_each():
    token = new_token()
    r = finish(popen(['sh', '-c', "printf 'a\\nb\\nc\\n' | while read x; do "
                      'echo got $x; "$0" --stdin=none true; done', FLAUNCH],
                     token=token))
    assert lines(r.out) == ['got a', 'got b', 'got c'], r
    r = finish(popen(['sh', '-c', "printf 'a\\nb\\nc\\n' | while read x; do "
                      'echo got $x; "$0" --nproc_per_node=2 true; done',
                      FLAUNCH], token=token))
    assert lines(r.out) == ['got a', 'got b', 'got c'], r


def test_stdin_goes_to_whom_it_is_given():
    def counts(option):
        p = popen(['sh', '-c', 'seq 100000 | "$0" %s --nproc_per_node=2 sh -c '
                   "'echo $RANK $(wc -l)'" % option, FLAUNCH],
                  token=new_token())
        return sorted(lines(finish(p).out))
    assert counts('') == ['0 100000', '1 0']
    assert counts('--stdin=1') == ['0 0', '1 100000']
    assert counts('--stdin=none') == ['0 0', '1 0']
    both = counts('--stdin=all')
    assert sum(int(line.split()[1]) for line in both) in range(99990, 100003)
    r = flaunch('--stdin=2', '--nproc_per_node=2', 'true')
    assert r.code == 2 and 'a rank from 0 to 1' in r.err, r
