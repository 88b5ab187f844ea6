"""The report: what stands last on the screen, and in the error file."""
import json
import re
import signal
import subprocess
import sys

from harness import *

ENV = {'OMP_NUM_THREADS': '1'}
RECORD = '{"message": {"message": "ValueError: %s", "extraInfo": ' \
         '{"py_callstack": "Traceback", "timestamp": "1"}}}'


def error_file_of(path, *args):
    r = flaunch(*args, env=dict(ENV, TORCHELASTIC_ERROR_FILE=path))
    with open(path) as f:
        return r, json.load(f)


def test_the_parts_of_a_report():
    r = flaunch('--nproc-per-node=5', '--rdzv-id=job7', 'sh', '-c',
                'test $RANK = 4 && exit 0; test $RANK = 2 || exec sleep 100; '
                'sleep 0.3; seq 100 >&2; printf last >&2; exit 7', env=ENV)
    assert r.code == 7, r
    report = r.err[r.err.index('flaunch: rank 2'):].splitlines()
    assert re.fullmatch(r'flaunch: rank 2 \(pid \d+\) exited with code 7 after '
                        r'0\.\d s; 3 others stopped', report[0]), report
    assert re.fullmatch(r'  job job7 on %s, running /\S*/sh, peak memory \d+ MiB'
                        % re.escape(os.uname().nodename), report[1]), report
    assert report[2] == '  its last lines on stderr:', report
    assert report[3:23] == ['    %d' % i for i in range(82, 101)] + ['    last']
    assert report[23:] == ['  stopped by flaunch: ranks 0-1, 3',
                           '  already done: rank 4'], report
    assert len(report) <= 40


def test_both_streams_where_they_are_one():
    for args in (['--nproc-per-node=2'], ['--log-prefix=>']):
        r = flaunch(*args, 'sh', '-c',
                    'test $RANK = 1 && exec sleep 100; echo o; echo e >&2; exit 3',
                    env=ENV, stderr=subprocess.STDOUT)
        assert '  its last lines:\n    o\n    e\n' in r.out, r.out
    r = flaunch('sh', '-c', 'exit 3', stderr=subprocess.STDOUT)
    assert 'its last lines stand above' in r.out, r.out


def test_logs_are_named_and_read():
    with TempDir() as d:
        r = flaunch('-r3', '--log-dir', d, 'sh', '-c', 'echo why >&2; exit 3')
        assert '  its last lines on stderr:\n    why\n' in r.err, r
        path = re.search(r'  its log: (.*)', r.err).group(1)
        assert open(path).read() == 'why\n', r


def test_what_the_worker_reported_is_shown():
    script = 'printf \'%s\' "$0" > $TORCHELASTIC_ERROR_FILE; exit 3'
    r = flaunch('sh', '-c', script, RECORD % 'bad shard')
    assert '  it reported: ValueError: bad shard\n' in r.err, r
    assert '  its call stack:\n    Traceback\n' in r.err, r
    r = flaunch('sh', '-c', 'echo words >&2; ' + script, RECORD % 'bad shard')
    assert '    words\n' in r.err and 'call stack' not in r.err, r
    r = flaunch('sh', '-c', script, '{"message": "plain\\nsecond", "timestamp": 5}')
    assert '  it reported: plain\n    second\n' in r.err, r
    for bad in ('not json', '[]', '{"message": 5}', '{}', '"x"',
                '{"message": {"x": 1}}', '', '[' * 100000):
        r = flaunch('sh', '-c', script, bad)
        assert r.code == 3 and 'is no error record' in r.err, (bad[:9], r)
    r = flaunch('sh', '-c', 'mkfifo $TORCHELASTIC_ERROR_FILE; exit 3')
    assert r.code == 3 and 'is no file' in r.err, r
    r = flaunch('sh', '-c', 'ln -s /etc/passwd $TORCHELASTIC_ERROR_FILE; exit 3')
    assert r.code == 3 and 'cannot read its error file' in r.err, r
    r = flaunch('sh', '-c', 'echo x > $TORCHELASTIC_ERROR_FILE')
    assert r.code == 0 and r.err == '', r
    for text in ('esc\\u001b[31m\\u0007', 'x' * 10000):
        r = flaunch('sh', '-c', script, '{"message": "%s"}' % text)
        assert '\x1b' not in r.err and max(map(len, lines(r.err))) < 1100, r


def test_what_ends_flaunch_before_a_job_began_is_in_the_error_file():
    with TempDir() as d, socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        s.listen()
        port = '--master-port=%d' % s.getsockname()[1]
        for code, words, args in ((125, 'is taken by pid', [port, 'true']),
                                  (127, 'nothere', [d + '/nothere'])):
            r, j = error_file_of(d + '/e.json', *args)
            assert r.code == code, r
            assert words in j['message']['message'], j
            assert j['message']['errorCode'] == code, j
            assert j['message']['extraInfo']['flaunch']['exit_code'] == code, j
            os.unlink(d + '/e.json')
        # As under torchrun a mistake of the command line is nobody's error.
        r = flaunch('--bogus', 'true',
                    env={'TORCHELASTIC_ERROR_FILE': d + '/e.json'})
        assert r.code == 2 and os.listdir(d) == [], r


def test_the_error_file_has_the_workers_record_and_ours():
    script = 'printf \'%s\' "$0" > $TORCHELASTIC_ERROR_FILE; exit 3'
    with TempDir() as d:
        r, j = error_file_of(d + '/e.json', 'sh', '-c', script, RECORD % 'x')
        message = j['message']
        assert message['message'] == 'ValueError: x', j
        assert message['errorCode'] == 3, j
        assert message['extraInfo']['py_callstack'] == 'Traceback', j
        ours = message['extraInfo']['flaunch']
        assert ours['exit_code'] == 3 and ours['workers'][0]['rank'] == 0, j
        # A text stays one, as under torchrun; an existing file is replaced.
        r, j = error_file_of(d + '/e.json', 'sh', '-c', script, '{"message": "t"}')
        assert j['message'] == 't' and 'errorCode' not in j, j
        assert j['extraInfo']['flaunch']['exit_code'] == 3, j
        assert os.listdir(d) == ['e.json'], os.listdir(d)


def test_the_error_file_is_ours_where_the_worker_left_none():
    with TempDir() as d:
        r, j = error_file_of(
            d + '/e.json', '--nproc-per-node=3', 'sh', '-c',
            'test $RANK = 1 && { printf "\\377why\\n" >&2; kill -SEGV $$; }; '
            'exec sleep 100')
        ours = j['message']['extraInfo']['flaunch']
        assert j['message']['errorCode'] == 139 == r.code, j
        assert 'killed by SIGSEGV' in j['message']['message'], j
        assert [w['fate'] for w in ours['workers']] == [
            'stopped by flaunch', 'failed first', 'stopped by flaunch'], j
        assert ours['workers'][1]['signal'] == 'SIGSEGV', j
        assert ours['last_lines'] == '\ufffdwhy\n', j
        assert j['message']['extraInfo']['timestamp'].isdigit(), j
        r, j = error_file_of(d + '/f.json', '--timeout=0.2', 'sleep', '100')
        assert j['message']['message'] == \
            'the job was stopped: --timeout=0.2 is over', j
        r = flaunch('true', env={'TORCHELASTIC_ERROR_FILE': d + '/g.json'})
        assert r.code == 0 and not os.path.exists(d + '/g.json')
        r = flaunch('false', env={'TORCHELASTIC_ERROR_FILE': d + '/no/e.json'})
        assert r.code == 1 and 'cannot write error file' in r.err, r


def test_the_first_failure_is_the_first_that_was_reaped():
    """Two fail 50 ms apart; torchrun names the wrong one in 9 of 10 runs."""
    for i in range(10):
        r = flaunch('--nproc-per-node=4', 'sh', '-c',
                    'case $RANK in 3) sleep 0.3; exit 5;; 0) sleep 0.35; exit 6;; '
                    '*) exec sleep 100;; esac', env=ENV)
        assert r.code == 5 and 'flaunch: rank 3 ' in r.err, r


def is_stopped(pid):
    """Every thread of it: the signal takes a moment."""
    states = []
    for thread in os.listdir('/proc/%d/task' % pid):
        with open('/proc/%d/task/%s/stat' % (pid, thread)) as f:
            states.append(f.read().rpartition(')')[2].split()[0])
    return set(states) == {'T'}


def test_who_failed_by_itself_as_well_is_listed():
    """All fail while flaunch is stopped, so before it can stop any."""
    script = ('import os, time\n'
              'open(os.environ["D"] + os.environ["RANK"], "w")\n'
              'while not os.path.exists(os.environ["D"] + "go"): time.sleep(.001)\n'
              'os._exit(4 if os.environ["RANK"] != "6" else 0)\n')
    with TempDir() as d:
        token = uuid.uuid4().hex
        p = start(['--nproc-per-node=7', sys.executable, '-c', script],
                  env=dict(ENV, D=d + '/'), token=token)
        wait_until(lambda: len(os.listdir(d)) == 7, 'all workers')
        p.send_signal(signal.SIGSTOP)
        wait_until(lambda: is_stopped(p.pid), 'flaunch to be stopped')
        with open(d + '/go', 'w'):
            pass
        wait_until(lambda: len(left_behind(token)) == 2, 'their ends')
        p.send_signal(signal.SIGCONT)
        r = finish(p)
    also = [l for l in lines(r.err) if l.startswith('  also failed: ')]
    assert r.code == 4 and len(also) == 4, r
    assert all(re.fullmatch(r'  also failed: rank [0-5] \(pid \d+\) exited with '
                            r'code 4, \d+\.\d{3} s later', l) for l in also[:3]), also
    assert also[3] == '  also failed: 2 more', also
    assert '  already done: rank 6\n' in r.err and 'stopped' not in r.err, r


def test_nothing_of_the_run_directory_stays():
    with TempDir() as d:
        env = dict(ENV, XDG_RUNTIME_DIR=d, TMPDIR='/nonexistent')
        r = flaunch('sh', '-c', 'stat -c "%a %u" $(dirname $TORCHELASTIC_ERROR_FILE)'
                    '; echo x > $TORCHELASTIC_ERROR_FILE; exit 2', env=env)
        assert r.out == '700 %d\n' % os.getuid() and os.listdir(d) == [], r
        for i in range(20):
            token = uuid.uuid4().hex
            p = start(['--nproc-per-node=2', 'sh', '-c', 'echo x > '
                       '$TORCHELASTIC_ERROR_FILE; exec sleep 100'], env=env,
                      token=token)
            time.sleep(0.001 * i)
            p.kill()
            finish(p)
            assert_nothing_left(token)
        wait_until(lambda: os.listdir(d) == [], 'an empty directory', 10)


def test_the_c_library_reports_too():
    r = flaunch('--nproc-per-node=2', prog('report_error'), 'bad "thing" \xe4\n')
    assert r.code == 1 and '  it reported: bad "thing" \xe4\n' in r.err, r
    r = program(prog('report_error'), 'x')
    assert r.code == 2 and 'TORCHELASTIC_ERROR_FILE is not set' in r.err, r
    with TempDir() as d:
        r, j = error_file_of(d + '/e.json', prog('report_error'), b'\xff\xf0\x9f\x98\x80')
        assert j['message']['message'] == '\ufffd\U0001f600', j
