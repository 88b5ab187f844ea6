"""Restarts and time limits."""
import re
import signal
import subprocess
import time

from harness import *


def attempts(result):
    return re.findall(r'^attempt (\d+)$', result.out, re.M)


def test_a_job_that_fails_is_started_again_n_times():
    for n in (0, 1, 3):
        r = flaunch('--nproc_per_node=2', '--max-restarts=%d' % n,
                    '--restart-backoff=0', 'sh', '-c',
                    'test $RANK = 1 || exec sleep 100; '
                    'echo attempt $TORCHELASTIC_RESTART_COUNT; exit 5')
        assert r.code == 5, r
        assert attempts(r) == [str(i) for i in range(n + 1)], r
        assert r.err.count('restart ') == n, r
        assert r.err.count('exited with code 5') == n + 1, r


def test_a_restart_that_is_well_is_0():
    r = flaunch('--nproc_per_node=3', '--max-restarts=2',
                '--restart-backoff=0', 'sh', '-c',
                'test $RANK$FLAUNCH_ATTEMPT != 10 || exit 9; '
                'test $TORCHELASTIC_MAX_RESTARTS = 2')
    assert r.code == 0, r
    assert 'rank 1 ' in r.err and 'restart 1 of 2 in 0 s' in r.err, r


def test_a_short_attempt_makes_the_next_one_wait():
    begin = time.monotonic()
    r = flaunch('--max-restarts=2', '--restart-backoff=0.4', 'false')
    assert r.code == 1, r
    assert time.monotonic() - begin >= 1.1, r  # 0.4 and 0.8 s
    assert 'restart 1 of 2 in 0.4 s' in r.err, r
    assert 'restart 2 of 2 in 0.8 s' in r.err, r


def test_the_store_is_fresh_and_its_port_the_same():
    r = flaunch('--nproc_per_node=2', '--max-restarts=3',
                '--restart-backoff=0', 'python3', '-c', '''
import os, socket, struct, sys
s = socket.create_connection(("127.0.0.1", int(os.environ["MASTER_PORT"])))
def str_(b): return struct.pack("<Q", len(b)) + b
s.sendall(bytes.fromhex("00cef7853c") + b"\\x04" + str_(b"/n" +
          os.environb[b"RANK"]) + struct.pack("<q", 1))
got = struct.unpack("<q", s.recv(8, socket.MSG_WAITALL))[0]
attempt = os.environ["FLAUNCH_ATTEMPT"]
if os.environ["RANK"] == "0":
    os.write(1, b"%s %d\\n" % (os.environb[b"MASTER_PORT"], got))
sys.exit(0 if attempt == "2" else 4)
''')
    assert r.code == 0, r
    assert len(set(lines(r.out))) == 1 and lines(r.out)[0].endswith(' 1'), r


def test_programs_that_cannot_run_are_not_tried_again():
    with TempDir() as d:
        with open(d + '/script', 'w') as f:
            f.write('no interpreter\n')
        os.chmod(d + '/script', 0o755)
        r = flaunch('--max-restarts=5', d + '/script')
        assert r.code == 126 and 'restart' not in r.err, r
    for code in (126, 127):
        r = flaunch('--max-restarts=5', 'sh', '-c', 'exit %d' % code)
        assert r.code == code and 'restart' not in r.err, r


def test_killing_the_workers_uses_up_restarts_and_no_more():
    r = flaunch('--max-restarts=2', '--restart-backoff=0', 'sh', '-c',
                'kill -KILL $$')
    assert r.code == 137 and r.err.count('was killed by SIGKILL') == 3, r


def test_a_stop_signal_ends_restarts():
    token = 'r%d' % time.monotonic_ns()
    p = start(['--nproc_per_node=2', '--max-restarts=100',
               '--restart-backoff=30', 'false'], token=token)
    wait_until(lambda: b'restart 1 of 100' in p.stderr.readline(), 'a word')
    p.send_signal(signal.SIGTERM)
    r = finish(p)
    assert r.code == 1, r  # the worker's own
    assert_nothing_left(token)
    p = start(['--nproc_per_node=2', '--max-restarts=100', 'sleep', '100'],
              token=token)
    wait_until(lambda: sum('sleep' in n for _, n in left_behind(token)) >= 2,
               'workers')
    p.send_signal(signal.SIGTERM)
    r = finish(p)
    assert r.code == 143 and 'restart' not in r.err, r
    assert_nothing_left(token)


def test_nothing_is_left_when_flaunch_is_killed_between_attempts():
    for delay in (0.0, 0.01, 0.05, 0.1):
        token = 'r%d' % time.monotonic_ns()
        p = start(['--nproc_per_node=4', '--max-restarts=1000',
                   '--restart-backoff=0', 'sh', '-c',
                   'setsid sleep 100 & exit 1'], token=token,
                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        p.kill()
        p.wait()
        assert_nothing_left(token)


def test_many_restarts_leak_no_descriptor():
    token = 'r%d' % time.monotonic_ns()
    p = start(['--max-restarts=300', '--restart-backoff=0', 'false'],
              token=token)

    def open_files():
        try:
            return len(os.listdir('/proc/%d/fd' % p.pid))
        except OSError:
            return 0
    wait_until(lambda: b'restart 20 of' in p.stderr.readline(), 'a word')
    early = open_files()
    wait_until(lambda: b'restart 280 of' in p.stderr.readline(), 'a word')
    late = open_files()
    r = finish(p)
    assert r.code == 1, r
    assert late <= early + 12, (early, late)
    assert_nothing_left(token)


def test_a_time_limit_stops_the_job_with_124():
    begin = time.monotonic()
    r = flaunch('--nproc_per_node=2', '--timeout=0.5', 'sleep', '100')
    assert r.code == 124, r
    assert '--timeout=0.5 is over: 2 workers are stopping' in r.err, r
    assert time.monotonic() - begin < 60
    r = flaunch('--timeout=0.3', '--shutdown-timeout=0.3', 'sh', '-c',
                'trap "" TERM; sleep 100')
    assert r.code == 124, r
    r = flaunch('--timeout=100', 'sh', '-c', 'exit 3')
    assert r.code == 3, r
    r = flaunch('--timeout=0.3', '--max-restarts=9', '--restart-backoff=20',
                'false')
    assert r.code == 124, r


def test_a_job_that_is_done_does_not_wait_for_its_limit():
    begin = time.monotonic()
    r = flaunch('--timeout=300', '--max-spread=300', '--nproc-per-node=2', 'true',
                env={'OMP_NUM_THREADS': '1'})
    assert r.code == 0 and r.err == '', r
    assert time.monotonic() - begin < 100


def test_a_restart_that_cannot_be_prepared_ends_the_job():
    with TempDir() as d:
        r = flaunch('-r1', '--log-dir', d, '--max-restarts=3',
                    '--restart-backoff=0', 'sh', '-c',
                    'rm -r "$0"/*_*; exit 3', d, seconds=30)
        assert r.code == 125, r
        assert "cannot make log directory '%s/" % d in r.err, r
        assert r.err.count('No such file or directory') == 1, r


def test_workers_start_again_after_strays_were_killed():
    """A control group whose cgroup.kill was used takes no new process."""
    r = flaunch('--max-restarts=1', '--restart-backoff=0', 'sh', '-c',
                'test $FLAUNCH_ATTEMPT = 1 && exit 0; '
                "setsid sh -c 'trap \"\" TERM; sleep 100; sleep 100' & "
                'sleep 0.2; exit 3')
    assert r.code == 0, r
