"""Further signals make the end faster, never worse."""
from scenario import *


def test_many_interrupts_leave_nothing():
    token = new_token()
    p = start(['--nproc_per_node=4', 'sh', '-c',
               "trap '' INT TERM; while :; do sleep 0.1; done"], token=token)
    wait_for_workers(token, 'sh', 4)
    for _ in range(20):
        p.send_signal(signal.SIGINT)
        time.sleep(0.002)
    r = finish(p)
    assert r.code == 130, r
    assert_nothing_left(token)


def test_a_key_press_reaches_a_worker_once():
    """In a terminal: the key goes to the foreground group, which is ours; the
    workers have sessions of their own."""
    with TempDir() as d:
        with open(d + '/worker.py', 'w') as f:
            f.write('import os, signal, sys, time\n'
                    'n = []\n'
                    'signal.signal(signal.SIGINT, lambda *a: n.append(1))\n'
                    'open("%s/up" %% sys.argv[1], "w").close()\n'
                    'end = time.monotonic() + 60\n'
                    'while not n and time.monotonic() < end: time.sleep(0.01)\n'
                    'time.sleep(0.3)\n'
                    'open("%s/n" %% sys.argv[1], "w").write(str(len(n)))\n'
                    % ('%s', '%s'))
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(FLAUNCH, [FLAUNCH, d + '/worker.py', d], clean_env())
        wait_until(lambda: os.path.exists(d + '/up'), 'the worker')
        os.write(fd, b'\x03')
        wait_until(lambda: os.path.exists(d + '/n') and
                   open(d + '/n').read(), 'its count')
        with open(d + '/n') as f:
            assert f.read() == '1'
        _, status = os.waitpid(pid, 0)
        os.close(fd)
        assert os.waitstatus_to_exitcode(status) == 0
