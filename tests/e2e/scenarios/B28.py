"""What a worker writes appears at once."""
from scenario import *


def test_a_python_line_is_there_before_the_worker_ends():
    for n in ('1', '2'):
        p = start(['--nproc-per-node=' + n, 'python3', '-c',
                   'import time; print("x"); time.sleep(100)'])
        begin = time.monotonic()
        assert p.stdout.readline() == b'x\n'
        assert time.monotonic() - begin < 15  # ten times the 1.5 s
        p.terminate()
        finish(p)


def test_pythonunbuffered_is_set_unless_the_user_did():
    r = flaunch('sh', '-c', 'echo $PYTHONUNBUFFERED')
    assert r.out == '1\n', r
    r = flaunch('sh', '-c', 'echo "[$PYTHONUNBUFFERED]"',
                env={'PYTHONUNBUFFERED': ''})
    assert r.out == '[]\n', r


def test_a_pseudo_terminal_for_programs_that_insist():
    """libc writes line by line to a terminal only."""
    p = start(['--pty', '--nproc-per-node=2', 'awk',
               'BEGIN { print "line"; system("sleep 100") }'])
    assert p.stdout.readline() == b'line\n'
    p.terminate()
    finish(p)
