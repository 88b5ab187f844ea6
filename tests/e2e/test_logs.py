"""What becomes of the workers' output: files, tee, filters, prefixes, order,
and readers that stall or leave."""
import fcntl
import glob
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import threading
import time

from harness import *

SAY = 'echo out $RANK; echo err $RANK >&2'


def read(path):
    with open(path, 'rb') as f:
        return f.read().decode(errors='surrogateescape')


def tree(base):
    """Files below base; the run's directory is named "run"."""
    found = {}
    for path in glob.glob(base + '/*/**', recursive=True):
        if os.path.isfile(path) and '/latest/' not in path:
            name = re.sub(r'^[^/]+_[a-z0-9]{8}/', 'run/',
                          os.path.relpath(path, base))
            found[name] = read(path)
    return found


def test_redirects_go_to_files_in_torchruns_layout():
    with TempDir() as d:
        r = flaunch('-r', '3', '--log-dir', d + '/a/b', '--nproc-per-node=2',
                    '--rdzv-id=job7', 'sh', '-c', SAY)
        assert r.code == 0 and r.out == '' and own_lines(r) == [], r
        assert tree(d + '/a/b') == {
            'run/attempt_0/%d/std%s.log' % (i, s): '%s %d\n' % (s, i)
            for i in range(2) for s in ('out', 'err')}, tree(d + '/a/b')
        run = os.path.realpath(d + '/a/b/latest')
        assert os.path.basename(run).startswith('job7_'), run
        assert os.stat(run).st_mode & 0o777 == 0o700


def test_maps_choose_rank_and_stream():
    with TempDir() as d:
        r = flaunch('-r', '0:1,1:2', '--log-dir', d, '--nproc-per-node=2',
                    'sh', '-c', SAY)
        assert r.out == 'out 1\n' and 'err 0' in r.err, r
        assert tree(d) == {'run/attempt_0/0/stdout.log': 'out 0\n',
                           'run/attempt_0/1/stderr.log': 'err 1\n'}, tree(d)
    with TempDir() as d:
        r = flaunch('-r', '8-10:1', '--log-dir', d, '--nproc-per-node=11',
                    'sh', '-c', 'echo $RANK')
        assert sorted(lines(r.out)) == [str(i) for i in range(8)], r
        assert len(tree(d)) == 3, tree(d)


def test_a_tee_has_both_and_its_prefix():
    with TempDir() as d:
        r = flaunch('-t', '3', '--role=tr', '--log-dir', d,
                    '--nproc-per-node=2', 'sh', '-c', SAY)
        assert sorted(lines(r.out)) == ['[tr0]:out 0', '[tr1]:out 1'], r
        assert sorted(l for l in lines(r.err) if 'err' in l) == [
            '[tr0]:err 0', '[tr1]:err 1'], r
        assert tree(d)['run/attempt_0/1/stderr.log'] == 'err 1\n'
    template = '<${role_name} ${rank}/${local_rank} $$ ${x}> '
    with TempDir() as d:
        r = flaunch('-t1', '--log-dir', d, 'sh', '-c', SAY,
                    env={'TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE': template})
        assert r.out == '<default 0/0 $ ${x}> out 0\n', r


def test_prefix_and_time_on_request_without_files():
    with TempDir() as d:
        r = flaunch('--log-prefix=$rank@${host}: ', '--nproc-per-node=2',
                    'sh', '-c', SAY, env={'TMPDIR': d})
        assert sorted(lines(r.out)) == ['%d@%s: out %d' % (
            i, os.uname().nodename, i) for i in range(2)], r
        r = flaunch('--timestamps', 'sh', '-c', SAY, env={'TMPDIR': d})
        assert re.fullmatch(r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} out 0\n',
                            r.out), r
        assert os.listdir(d) == [], os.listdir(d)


def test_nothing_is_made_when_nothing_is_asked_for():
    with TempDir() as d:
        r = flaunch('--nproc-per-node=2', 'sh', '-c', SAY, cwd=d,
                    env={'TMPDIR': d, 'XDG_RUNTIME_DIR': d})
        assert r.code == 0 and os.listdir(d) == [], (r, os.listdir(d))
        r = flaunch('-r', '3', '--log-dir=/dev/null', 'sh', '-c', SAY, cwd=d,
                    env={'TMPDIR': d, 'XDG_RUNTIME_DIR': d})
        assert r.out == 'out 0\n' and os.listdir(d) == [], (r, os.listdir(d))
        r = flaunch('--log-dir', d + '/a/logs', 'true')
        assert r.code == 0 and os.listdir(d) == [], os.listdir(d)
        os.mkdir(d + '/mine')
        r = flaunch('--log-dir', d + '/mine/logs', 'true')
        assert r.code == 0 and os.listdir(d) == ['mine'], os.listdir(d)


def test_a_directory_of_its_own_is_kept_and_named():
    with TempDir() as d:
        r = flaunch('-r3', 'sh', '-c', SAY, env={'TMPDIR': d})
        named = re.search(r'^flaunch: logs are in (.*)$', r.err, re.M).group(1)
        assert named.startswith(d) and r.code == 0, r
        assert read(named + '/attempt_0/0/stdout.log') == 'out 0\n'


def test_each_attempt_has_its_directory():
    with TempDir() as d:
        r = flaunch('-r1', '--log-dir', d, '--max-restarts=2',
                    '--restart-backoff=0', 'sh', '-c',
                    'echo $TORCHELASTIC_RESTART_COUNT; exit 3')
        assert r.code == 3, r
        assert tree(d) == {'run/attempt_%d/0/stdout.log' % i: '%d\n' % i
                           for i in range(3)}, tree(d)


def test_a_filter_hides_ranks_and_keeps_their_files():
    with TempDir() as d:
        r = flaunch('--local-ranks-filter=1', '--nproc-per-node=2', 'sh', '-c',
                    SAY)
        assert r.out == 'out 1\n' and 'err 0' not in r.err, r
        r = flaunch('-t3', '--local-ranks-filter=1', '--log-dir', d,
                    '--nproc-per-node=2', 'sh', '-c', SAY)
        assert r.out == '[default1]:out 1\n', r
        assert len(tree(d)) == 4, tree(d)


def test_lines_with_a_text_are_written_twice():
    with TempDir() as d:
        r = flaunch('-t1', '--log-dir', d, '--nproc-per-node=2',
                    '--duplicate-stdout-filters=a,,b,zz',
                    '--duplicate-stderr-filters=x', 'sh', '-c',
                    'echo a,b; echo a; echo zz')
        assert r.code == 0 and len(lines(r.out)) == 6, r
        files = tree(d)
        filtered = files['run/attempt_0/filtered_stdout.log']
        assert sorted(lines(filtered)) == [
            '[default0]:a,b', '[default0]:zz', '[default1]:a,b',
            '[default1]:zz'], filtered
        assert files['run/attempt_0/filtered_stderr.log'] == ''


def test_hostile_log_directories_are_refused_before_anything_starts():
    with TempDir() as d:
        os.mkdir(d + '/open')
        os.chmod(d + '/open', 0o777)
        with open(d + '/file', 'w'):
            pass
        os.symlink(d + '/nowhere', d + '/dangling')
        cases = [('open', 'may be written by everybody'),
                 ('file', 'Not a directory'), ('file/x', 'Not a directory'),
                 ('dangling', 'dangling'), ('x' * 256, 'File name too long')]
        if os.getuid() == 0:
            os.mkdir(d + '/good')
            os.symlink(d + '/good', d + '/theirs')
            os.lchown(d + '/theirs', 65534, 65534)
            cases.append(('theirs', 'symbolic link of another user'))
        else:
            os.mkdir(d + '/sealed')
            os.chmod(d + '/sealed', 0o555)
            cases.append(('sealed', 'Permission denied'))
        for name, words in cases:
            r = flaunch('-r3', '--log-dir', '%s/%s' % (d, name), 'touch',
                        d + '/ran')
            assert r.code == 2 and words in r.err, (name, r)
            assert len(lines(r.err)) == 1 and name in r.err, (name, r)
            assert not os.path.exists(d + '/ran'), name


def test_one_channel_keeps_the_order_of_both_streams():
    script = 'for i in 1 2 3 4 5 6 7 8; do echo o$i; echo e$i >&2; done'
    wanted = ''.join('o%d\ne%d\n' % (i, i) for i in range(1, 9))
    for n in ('1', '2'):
        r = flaunch('--nproc-per-node=' + n, 'sh', '-c',
                    'test $RANK = 0 || exit 0; ' + script,
                    stderr=subprocess.STDOUT, env={'OMP_NUM_THREADS': '1'})
        assert r.out == wanted, r


def test_raw_hands_our_descriptors_on():
    with TempDir() as d:
        with open(d + '/out', 'wb') as out:
            r = flaunch('--raw', '--nproc-per-node=2', 'sh', '-c',
                        'readlink /proc/self/fd/1', stdout=out)
        assert r.code == 0 and read(d + '/out') == (d + '/out\n') * 2, r


def pty_run(args, act=None, env=None, rows=40, cols=123):
    """flaunch on a terminal: exit code and what the terminal saw."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ,
                rows.to_bytes(2, 'little') + cols.to_bytes(2, 'little') + bytes(4))
    token = uuid.uuid4().hex

    def own_terminal():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    p = start(args, env=dict({'OMP_NUM_THREADS': '1'}, **(env or {})),
              token=token, stdin=slave, stdout=slave, stderr=slave,
              preexec_fn=own_terminal)
    os.close(slave)
    seen = b''
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.05)[0]:
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            seen += data
        if act is not None and act(p, seen, master):
            act = None
    os.close(master)
    code = p.wait(LONG)
    assert_nothing_left(token)
    return code, seen.decode(errors='replace').replace('\r\n', '\n')


def test_on_a_terminal_workers_have_one():
    code, seen = pty_run(['--nproc-per-node=2', 'sh', '-c',
                          'test -t 1 && test -t 2 && stty size <&1'])
    assert code == 0 and seen == '40 123\n' * 2, seen
    code, seen = pty_run(['--pty', 'sh', '-c', 'test -t 1'])
    assert code == 0, seen
    r = flaunch('--pty', 'sh', '-c', 'test -t 1 && test -t 2 && echo yes')
    assert r.code == 0 and r.out == 'yes\n', r


def test_a_new_size_reaches_the_workers():
    def resize(p, seen, master):
        if b'ready' not in seen:
            return False
        fcntl.ioctl(master, termios.TIOCSWINSZ,
                    (50).to_bytes(2, 'little') + (77).to_bytes(2, 'little')
                    + bytes(4))
        p.send_signal(signal.SIGWINCH)
        return True
    script = ('import os,signal,time\n'
              'signal.signal(signal.SIGWINCH, lambda *a: os._exit(\n'
              '    os.get_terminal_size(1) != (77, 50)))\n'
              'os.write(1, b"ready\\n"); time.sleep(60); os._exit(9)\n')
    code, seen = pty_run([sys.executable, '-c', script], act=resize)
    assert code == 0, seen


def test_an_unfinished_line_appears_on_a_terminal():
    def answer(p, seen, master):
        if b'name? ' not in seen:
            return False
        os.write(master, b'joe\n')
        return True
    code, seen = pty_run(['--nproc-per-node=2', 'sh', '-c',
                          'test $RANK = 1 && exit; printf "name? "; read n; '
                          'echo hello $n'], act=answer)
    assert code == 0 and 'hello joe' in seen, seen


def test_a_flood_on_a_terminal_keeps_its_lines():
    """An unfinished line that is about to go on is no prompt."""
    code, seen = pty_run(['--nproc-per-node=2', 'seq', '100000', '300000'])
    assert code == 0
    count = {}
    for line in seen.splitlines():
        count[line] = count.get(line, 0) + 1
    assert len(count) == 200001 and set(count.values()) == {2}, [
        item for item in count.items() if item[1] != 2][:5]


def test_a_flood_into_a_tee_keeps_its_lines():
    with TempDir() as d:
        r = flaunch('-t1', '--log-dir', d, '--nproc-per-node=4', 'seq', '100000',
                    '200000', env={'OMP_NUM_THREADS': '1'})
        assert r.code == 0 and r.err == '', r.err
        for rank in range(4):
            head = '[default%d]:' % rank
            got = [l[len(head):] for l in lines(r.out) if l.startswith(head)]
            assert got == [str(i) for i in range(100000, 200001)], got[:3]
        assert len(lines(r.out)) == 4 * 100001


def test_terminal_modes_come_back():
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    script = ('import os, fcntl, termios\n'
              'os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n'
              'os.execv(%r, [%r, "sh", "-c", "stty -echo -icanon; kill -9 $$"])'
              % (FLAUNCH, FLAUNCH))
    p = popen([sys.executable, '-c', script], stdin=slave, stdout=slave)
    assert finish(p).code == 128 + 9
    assert termios.tcgetattr(slave) == before
    os.close(master)
    os.close(slave)


def test_a_reader_that_stalls_stops_nothing_else():
    """Workers wait for their reader; Ctrl-C does not."""
    for signals, seconds in ((1, 10), (2, 10)):
        token = uuid.uuid4().hex
        p = start(['--nproc-per-node=2', '--shutdown-timeout=0.2', 'yes'],
                  token=token)
        fd = p.stdout.fileno()
        wait_until(lambda: select.select([fd], [], [], 0)[0], 'output')
        time.sleep(0.3)  # all buffers are full now
        for i in range(signals):
            p.send_signal(signal.SIGINT)
            time.sleep(0.05)
        begin = time.monotonic()
        code = p.wait(LONG)
        assert code == 130, code
        assert time.monotonic() - begin < seconds
        err = p.stderr.read().decode()
        assert 'bytes of output were not written' in err, err
        assert_nothing_left(token)
        p.stdout.close()
        p.stderr.close()


def test_nothing_is_lost_when_flaunch_is_killed():
    """With -r, -t or one worker to a file: every byte; else what flaunch had
    read, at most 64 KiB and what is under way."""
    script = ('import os\n'
              'i = 0\n'
              'count = os.open(os.environ["COUNT"], os.O_CREAT | os.O_WRONLY)\n'
              'while True:\n'
              '    os.write(1, b"%08d\\n" % i)\n'
              '    i += 1\n'
              '    if i % 1000 == 0: os.pwrite(count, b"%09d" % i, 0)\n')
    for args in (['-r1'], ['-t1'], []):
        with TempDir() as d:
            token = uuid.uuid4().hex
            with open(d + '/out', 'wb') as out:
                p = start(args + ['--log-dir', d, sys.executable, '-c', script],
                          stdout=out, token=token,
                          env={'COUNT': d + '/count'})
            wait_until(lambda: os.path.exists(d + '/count') and
                       int(read(d + '/count') or 0) > 20000, 'much output')
            p.kill()
            p.wait()
            assert_nothing_left(token)
            path = (glob.glob(d + '/*_*/attempt_0/0/stdout.log') or
                    [d + '/out'])[0]
            got = lines(read(path))
            whole = [l for l in got if len(l) == 8]
            assert len(got) - len(whole) <= 1, got[-3:]
            assert [int(l) for l in whole] == list(range(len(whole)))
            assert len(whole) >= int(read(d + '/count')), (args, len(whole))


def test_a_killed_flaunch_leaves_its_pipes_to_the_guard():
    script = ('import os, time\n'
              'if os.environ["RANK"] == "0":\n'
              '    os.write(1, b"first\\n"); time.sleep(100)\n'
              'while not os.path.exists(os.environ["STOPPED"]): time.sleep(.01)\n'
              'os.write(1, b"while stopped\\n" * 1000)\n'
              'open(os.environ["DONE"], "w"); time.sleep(100)\n')
    with TempDir() as d:
        token = uuid.uuid4().hex
        p = start(['--nproc-per-node=2', sys.executable, '-c', script],
                  token=token, env={'STOPPED': d + '/stopped',
                                    'DONE': d + '/done'})
        assert p.stdout.readline() == b'first\n'
        p.send_signal(signal.SIGSTOP)
        with open(d + '/stopped', 'w'):
            pass
        wait_until(lambda: os.path.exists(d + '/done'), 'the second worker')
        p.kill()
        rest = p.stdout.read()
        assert rest == b'while stopped\n' * 1000, len(rest)
        p.wait()
        p.stderr.close()
        assert_nothing_left(token)


def test_an_idle_job_wakes_nobody():
    """Tee, pipes and a terminal's timers: no wake-up while nothing is
    written."""
    with TempDir() as d:
        p = start(['-t1', '--log-dir', d, '--nproc-per-node=4', 'sh', '-c',
                   'echo ready; sleep 100'], env={'OMP_NUM_THREADS': '1'})

        def switches():
            n = 0
            for task in os.listdir('/proc/%d/task' % p.pid):
                status = read('/proc/%d/task/%s/status' % (p.pid, task))
                n += int(re.search(r'^voluntary_ctxt_switches:\s*(\d+)',
                                   status, re.M).group(1))
            return n
        for i in range(4):
            assert b'ready' in p.stdout.readline()
        quiet = [switches()]

        def settled():
            quiet.append(switches())
            time.sleep(0.3)
            return switches() == quiet[-1]
        wait_until(settled, 'a quiet flaunch')
        p.terminate()
        finish(p)
