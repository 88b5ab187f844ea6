"""Signals that are passed on, and a job that is paused."""
from scenario import *


def state_of(pid):
    with open('/proc/%d/stat' % pid) as f:
        return f.read().rpartition(')')[2].split()[0]


def test_ctrl_z_stops_all_and_cont_goes_on():
    token = new_token()
    p = start(['--nproc_per_node=2', 'sh', '-c', 'sleep 3 & wait; exit 0'],
              token=token)
    workers = wait_for_workers(token, 'sh', 2) + \
        wait_for_workers(token, 'sleep', 2)
    p.send_signal(signal.SIGTSTP)
    wait_until(lambda: all(state_of(pid) == 'T' for pid in workers + [p.pid]),
               'all stopped')
    time.sleep(0.3)
    assert all(state_of(pid) == 'T' for pid in workers)
    p.send_signal(signal.SIGCONT)
    assert finish(p).code == 0
    assert_nothing_left(token)


def test_a_paused_job_can_be_stopped():
    token = new_token()
    p = start(['--nproc_per_node=2', 'sleep', '100'], token=token)
    workers = wait_for_workers(token, 'sleep', 2)
    p.send_signal(signal.SIGTSTP)
    wait_until(lambda: all(state_of(pid) == 'T' for pid in workers + [p.pid]),
               'all stopped')
    p.send_signal(signal.SIGCONT)
    p.send_signal(signal.SIGTERM)
    assert finish(p).code == 143
    assert_nothing_left(token)


def test_a_wrapper_shell_survives_what_its_child_handles():
    """A shell without a trap would die of USR1, and its child with it."""
    with TempDir() as d:
        with open(d + '/child.py', 'w') as f:
            f.write('import os, signal\n'
                    'signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n'
                    'os.write(1, b"ready\\n")\n'
                    'signal.sigwait([signal.SIGUSR1])\n'
                    'os.write(1, b"got it\\n")\n')
        token = new_token()
        p = start(['bash', '-c', 'python3 %s/child.py; exit 3' % d],
                  token=token)
        assert p.stdout.readline() == b'ready\n'
        p.send_signal(signal.SIGUSR1)
        r = finish(p)
        assert r.code == 3 and r.out == 'got it\n', r
        assert_nothing_left(token)


def test_other_signals_are_passed_on_when_named():
    token = new_token()
    p = start(['--forward-signals=WINCH,SIGRTMIN', 'true'], token=token)
    r = finish(p)
    assert r.code == 2 and 'SIGRTMIN cannot be used here' in r.err, r
    p = start(['--forward-signals=WINCH', 'python3', '-c',
               'import os, signal\n'
               'signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])\n'
               'os.write(1, b"ready\\n")\n'
               'signal.sigwait([signal.SIGWINCH])\n'], token=token)
    assert p.stdout.readline() == b'ready\n'
    p.send_signal(signal.SIGWINCH)
    assert finish(p).code == 0
    assert_nothing_left(token)


def test_stacks_are_printed_at_a_time_limit():
    if not shutil.which('gdb'):
        raise Skip('gdb is not installed')
    r = flaunch('--nproc-per-node=2', '--timeout=0.3', '--stacks', 'sleep', '100')
    assert r.code == 124, r
    if 'ptrace' not in r.err:  # an ordinary user may not trace everywhere
        assert r.err.count('stack of process') == 2 and 'Thread 1' in r.err, r
    assert r.err.index('stack of') < r.err.index('--timeout=0.3 is over'), r
    r = flaunch('--timeout=0.3', '--stacks', '/bin/sleep', '100',
                env={'PATH': '/nonexistent'})
    assert r.code == 124 and 'cannot run gdb' in r.err, r


def test_signals_to_handle_are_those_that_stop():
    r = flaunch('--signals-to-handle=SIGTERM, usr1', 'sh', '-c',
                'trap "exit 5" USR1; kill -USR1 $(cut -d" " -f4 /proc/$PPID/stat);'
                'while :; do sleep 0.05; done')
    assert r.code == 5 and 'SIGUSR1: 1 worker is stopping' in r.err, r
    r = flaunch('--signals-to-handle=INT', 'sh', '-c',
                'echo $TORCHELASTIC_SIGNALS_TO_HANDLE; '
                'kill -TERM $(cut -d" " -f4 /proc/$PPID/stat); sleep 100')
    assert r.code == 143 and r.out == 'INT\n', r
    for bad in ('SIGKILL', 'nonsense', 'INT,STOP'):
        r = flaunch('--signals-to-handle=' + bad, 'true')
        assert r.code == 2 and 'cannot be used here' in r.err, r
    r = flaunch('--forward-signals=TERM', 'true')
    assert r.code == 2 and '--forward-signals: TERM' in r.err, r
