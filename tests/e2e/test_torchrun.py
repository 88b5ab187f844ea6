"""What flaunch does as torchrun does, without PyTorch: options, variables,
events, timers, the health check, completions."""
import json
import re
import sys
import urllib.request

from harness import *

sys.path.insert(0, os.path.join(ROOT, 'tests', 'interop', 'torchrun'))
from cases import Case, read_table  # noqa: E402

ONE_THREAD = {'OMP_NUM_THREADS': '1'}


def row(name):
    return next(r for r in read_table() if r['id'] == name)


def test_macros_are_expanded_where_that_is_asked_for():
    """As torchrun did it: the rows of its table, with our option."""
    for name in ('cmd-macro', 'cmd-runpath-nopython'):
        case = dict(row(name))
        case['args'] = '--expand-macros ' + case['args']
        found = Case(case, [FLAUNCH], sys.executable).run()
        assert found['rc'] == '0' and found['out'] == case['out'], found
    # Where torchrun's script is not there, ours is not either.
    case = dict(row('cmd-macro-entry'))
    case['args'] = '--expand-macros ' + case['args']
    found = Case(case, [FLAUNCH], sys.executable).run()
    assert found['rc'] == '2' and "argv0.py'" in found['lerr'], found


def test_a_hundred_workers_have_arguments_of_their_own():
    r = flaunch('--nproc-per-node=100', '--expand-macros', 'echo',
                '${local_rank}', env=ONE_THREAD)
    assert sorted(map(int, lines(r.out))) == list(range(100)), r


def test_virtual_local_ranks_see_one_gpu_each():
    script = 'echo $RANK $LOCAL_RANK $FLAUNCH_LOCAL_RANK $CUDA_VISIBLE_DEVICES; ' \
        'env | grep -c ^CUDA_VISIBLE_DEVICES='
    for visible, first, second in ((None, '0', '1'), ('7, GPU-x', '7', 'GPU-x')):
        r = flaunch('--nproc-per-node=2', '--virtual-local-rank', 'sh', '-c',
                    script, env={**ONE_THREAD, 'CUDA_VISIBLE_DEVICES': visible})
        assert sorted(lines(r.out)) == sorted([
            '0 0 0 ' + first, '1 0 1 ' + second, '1', '1']), r


def test_libflaunch_takes_virtual_local_ranks():
    r = flaunch('--nproc-per-node=2', '--virtual-local-rank',
                os.path.join(PROGS, 'init'), env=ONE_THREAD)
    assert r.code == 0, r
    assert sorted(lines(r.out)) == ['flaunch %d/2 local %d/2 cpu none 1' % (i, i)
                                    for i in range(2)], r


# Two sockets; one NUMA node, core and CPU in each.
TWO_NODES = 'pack:2 [numa] core:1 pu:1'


def bound(mode, n, topology=TWO_NODES):
    r = flaunch('--numa-binding=' + mode, '--nproc-per-node=%d' % n, 'sh', '-c',
                'echo $RANK $(sed -n "s/Cpus_allowed_list:.//p" '
                '/proc/self/status)',
                env={**ONE_THREAD, 'HWLOC_SYNTHETIC': topology})
    return r, [line.split()[1] for line in sorted(lines(r.out))]


def test_workers_are_bound_to_their_cpus():
    if not {0, 1} <= os.sched_getaffinity(0):
        raise Skip('no GPU and not CPUs 0 and 1: nothing to tell apart')
    for mode in ('node', 'socket', 'exclusive', 'core-complex'):
        r, cpus = bound(mode, 2)
        assert r.code == 0 and cpus == ['0', '1'], (mode, r)
    for mode, cpus in (('exclusive', ['0', '1']), ('node', ['0-1', '0-1'])):
        assert bound(mode, 2, 'pack:1 [numa] core:2 pu:1')[1] == cpus, mode
    r, cpus = bound('exclusive', 3)
    assert r.code == 2 and 'no CPU is left for local rank 0: 2 share' in r.err, r
    # Ours may be fewer than the machine's.
    with_one = subprocess.run(
        ['taskset', '-c', '1', FLAUNCH, '--numa-binding=node', 'sh', '-c',
         'taskset -p $$'], env=clean_env({'HWLOC_SYNTHETIC': TWO_NODES}),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=LONG)
    assert with_one.stdout.endswith(b': 2\n'), with_one


def test_a_binding_is_told_before_it_is_made():
    r = flaunch('--dry-run', '--numa-binding=node', '--nproc-per-node=2', 'true',
                env={'HWLOC_SYNTHETIC': TWO_NODES})
    assert r.code == 0 and '; on CPUs 0\n' in r.out, r


def test_hwloc_that_is_missing_is_named():
    with TempDir() as d:
        with open(d + '/libhwloc.so.15', 'w'):
            pass
        r = flaunch('--numa-binding=node', 'true', env={'LD_LIBRARY_PATH': d})
        assert r.code == 2 and 'needs hwloc 2' in r.err, r
        assert len(lines(r.err)) == 1, r
        r = flaunch('true', env={'LD_LIBRARY_PATH': d})
        assert r.code == 0 and r.err == '', r


def test_run_path_is_a_python_script_whatever_its_name():
    with TempDir() as d:
        with open(d + '/script', 'w') as f:
            f.write('import sys\nprint(sys.argv[1:], __name__)\n')
        r = flaunch('--run-path', '--no-python', d + '/script', 'a')
        assert r.code == 0 and r.out == "['a'] __main__\n", r


# ---------------------------------------------------------------- events

def events(*args, **kwargs):
    r = flaunch('--event-log-handler=console', *args, **kwargs)
    return r, [json.loads(line) for line in lines(r.err)
               if line.startswith('{')]


def states(found):
    return [(e['source'], e['metadata']['state'], e['metadata']['global_rank'])
            for e in found]


BEGIN = [('AGENT', 'RENDEZVOUS', None), ('AGENT', 'ASSIGN_WORKER_RANKS', None)]
START = [('WORKER', 'START', 0), ('WORKER', 'START', 1)]


def test_events_tell_how_a_job_went():
    begin = time.time()
    r, found = events('--nproc-per-node=2', '--rdzv-id=j', '--role=r',
                      '--rdzv-endpoint=localhost', 'true')
    assert r.code == 0, r
    assert states(found) == BEGIN + START + [
        ('WORKER', 'SUCCEEDED', 0), ('WORKER', 'SUCCEEDED', 1),
        ('AGENT', 'SUCCEEDED', None)], r
    for e in found:
        m = e['metadata']
        assert e['name'] == 'torchelastic.worker.status.' + m['state'], e
        assert begin - 1 <= e['timestamp'] <= time.time(), e
        assert (m['run_id'], m['role'], m['rdzv_backend']) == (
            'j', 'r', 'static'), e
        assert m['hostname'] == socket.gethostname(), e
        assert json.loads(m['metadata'])['entry_point'] == 'true', e
    assert found[0]['metadata']['duration_ms'] > 0, found[0]


def test_events_tell_of_failures_and_restarts():
    with TempDir() as d:
        script = ('test $RANK = 1 || exec sleep 100; echo \'{"message": "x"}\' '
                  '>$TORCHELASTIC_ERROR_FILE; exit 3')
        r, found = events('--nproc-per-node=2', '--max-restarts=1',
                          '--restart-backoff=0', '--log-dir', d, 'sh', '-c',
                          script, env=ONE_THREAD)
    assert r.code == 3, r
    assert states(found) == 2 * (BEGIN + START) + [
        ('WORKER', 'FAILED', 0), ('WORKER', 'FAILED', 1),
        ('AGENT', 'SUCCEEDED', None)], r
    assert [e['metadata']['agent_restarts'] for e in found] == [0] * 4 + [1] * 7
    stopped, failed = [e['metadata'] for e in found[-3:-1]]
    assert json.loads(stopped['metadata'])['exit_code'] == [-15], stopped
    assert json.loads(failed['metadata'])['exit_code'] == [3], failed
    assert json.loads(failed['raw_error']) == {'message': 'x'}, failed
    assert failed['worker_id'] == str(
        json.loads(failed['metadata'])['worker_pid'][0]), failed


def test_who_had_ended_well_is_terminated_where_another_failed():
    r, found = events('--nproc-per-node=2', 'sh', '-c',
                      'test $RANK = 1 || exit 0; sleep 0.5; exit 4',
                      env=ONE_THREAD)
    assert states(found)[-3:] == [('WORKER', 'TERMINATED', 0),
                                  ('WORKER', 'FAILED', 1),
                                  ('AGENT', 'SUCCEEDED', None)], r


def test_a_job_that_is_stopped_is_an_agent_that_failed():
    p = start(['--event-log-handler=console', 'sleep', '100'])
    while 'START' not in p.stderr.readline().decode():
        assert p.poll() is None
    p.terminate()
    r = finish(p)
    last = json.loads([line for line in lines(r.err) if line[0] == '{'][-1])
    assert r.code == 143, r
    assert last['source'] == 'AGENT' and last['metadata']['state'] == 'FAILED', r
    assert last['metadata']['raw_error'] == 'SIGTERM', r


# -------------------------------------------------------------- watchdog

TIMER = r'''
import json, os, sys, time
def timer(scope, seconds, signo, pid=None):
    at = time.time() + seconds if seconds >= 0 else -1
    with open(os.environ['TORCHELASTIC_TIMER_FILE'], 'w') as f:
        f.write(json.dumps({'version': 1, 'pid': pid or os.getpid(),
                            'scope_id': scope, 'expiration_time': at,
                            'signal': signo}) + '\n')
'''
ON = {**ONE_THREAD, 'TORCHELASTIC_ENABLE_FILE_TIMER': '1'}


def with_timers(script, *args, n=2, env=None):
    with TempDir() as d:
        r = flaunch('--nproc-per-node=%d' % n, *args, sys.executable, '-u', '-c',
                    TIMER + script, env={**ON, 'TMPDIR': d,
                                         'XDG_RUNTIME_DIR': d, **(env or {})})
        assert os.listdir(d) == [], os.listdir(d)
        return r


def test_a_timer_that_expires_ends_its_worker_and_the_attempt():
    begin = time.monotonic()
    r = with_timers("timer('fine', 100, 9); timer('fine', -1, 0)\n"
                    "if os.environ['RANK'] == '1': timer('step', 0.2, 9)\n"
                    'time.sleep(100)')
    assert r.code == 137 and time.monotonic() - begin < 30, r
    assert re.search(r'rank 1: the timer "step" of process \d+ has expired: '
                     'sending it SIGKILL\n', r.err), r
    assert ', its timer having expired; 1 other stopped' in r.err, r
    assert 'not sent by flaunch' not in r.err, r


def test_an_expired_timer_uses_up_a_restart():
    r = with_timers("os.environ['TORCHELASTIC_RESTART_COUNT'] == '1' and "
                    "sys.exit()\ntimer('s', 0, 9)\ntime.sleep(100)",
                    '--max-restarts=1', '--restart-backoff=0', n=1)
    assert r.code == 0 and 'restart 1 of 1' in r.err, r


def test_a_timer_may_choose_its_signal_and_exiting_well_is_no_way_out():
    r = with_timers("import signal\n"
                    "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))\n"
                    "timer('s', 0.1, int(signal.SIGUSR1)); time.sleep(100)",
                    n=1)
    assert r.code == 124 and 'sending it SIGUSR1' in r.err, r
    assert 'already done' not in r.err, r


def test_a_signal_that_is_ignored_is_followed_by_sigkill():
    r = with_timers("import signal\n"
                    "signal.signal(signal.SIGUSR1, signal.SIG_IGN)\n"
                    "timer('s', 0.1, int(signal.SIGUSR1)); time.sleep(100)",
                    '--shutdown-timeout=0.5', n=1)
    assert r.code == 137, r


def test_a_timer_of_a_helper_ends_its_worker():
    r = with_timers("if os.fork() == 0: timer('h', 0.2, 9)\ntime.sleep(100)",
                    n=1)
    assert r.code == 137 and 'rank 0: the timer "h"' in r.err, r


def test_nobody_but_workers_is_ever_signalled():
    stranger = subprocess.Popen(['sleep', '100'])
    try:
        r = with_timers(
            "with open(os.environ['TORCHELASTIC_TIMER_FILE'], 'w') as f:\n"
            "    f.write('nonsense\\n' + 'x' * 10000 + '\\n')\n"
            "timer('a', 0, 9, int(os.environ['STRANGER']))\n"
            "timer('b', 0, 9, os.getppid())\ntimer('c', 0, 9, 1)\n"
            'time.sleep(0.5)', n=1, env={'STRANGER': str(stranger.pid)})
        assert r.code == 0, r
        assert r.err.count("is no worker's") == 3, r
        assert '"nonsense" is no request for a timer' in r.err, r
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_fifo_of_the_users_choice_is_used_and_a_file_is_not():
    with TempDir() as d:
        r = flaunch('sh', '-c', 'test -p "$TORCHELASTIC_TIMER_FILE" && '
                    'stat -c %a "$TORCHELASTIC_TIMER_FILE"',
                    env={**ON, 'TORCHELASTIC_TIMER_FILE': d + '/fifo'})
        assert r.code == 0 and r.out == '600\n' and os.listdir(d) == [], r
        with open(d + '/file', 'w') as f:
            f.write('mine')
        r = flaunch('true', env={**ON, 'TORCHELASTIC_TIMER_FILE': d + '/file'})
        assert r.code == 125 and 'is there and is no FIFO' in r.err, r
        with open(d + '/file') as f:
            assert f.read() == 'mine'


def test_the_fifo_goes_with_a_killed_flaunch():
    with TempDir() as d:
        p = start(['sleep', '100'], token='fifo', env={
            **ON, 'TMPDIR': d, 'XDG_RUNTIME_DIR': d})
        wait_until(lambda: '(sleep)' in [n for _, n in left_behind('fifo')],
                   'a worker')
        assert any(n.startswith('watchdog_timer_') for n in os.listdir(d))
        p.kill()
        finish(p)
        wait_until(lambda: os.listdir(d) == [], 'a clean directory')


# ---------------------------------------------------------- health check

def test_the_health_check_answers_as_long_as_the_agent_turns():
    port = free_port()
    p = start(['sleep', '100'],
              env={'TORCHELASTIC_HEALTH_CHECK_PORT': str(port)})

    def get():
        try:
            with urllib.request.urlopen('http://127.0.0.1:%d/health' % port,
                                        timeout=5) as answer:
                return answer.status, answer.read()
        except OSError:
            return None
    assert wait_until(get, 'an answer') == (200, b'running\n')
    with socket.create_connection(('127.0.0.1', port)) as s:
        s.sendall(b'DELETE / HTTP/1.1\r\n\r\n')
        assert s.makefile('rb').read().startswith(b'HTTP/1.1 405 ')
    with socket.create_connection(('127.0.0.1', port)) as s:
        s.sendall(b'x' * 5000)
        try:
            assert s.recv(100) == b''
        except ConnectionResetError:
            pass
    # Clients that say nothing take no place from others for long: they wait.
    idle = [socket.create_connection(('127.0.0.1', port)) for _ in range(30)]
    for s in idle:
        s.close()
    assert wait_until(get, 'an answer') == (200, b'running\n')
    os.kill(p.pid, signal.SIGSTOP)
    with socket.create_connection(('127.0.0.1', port)) as s:
        s.settimeout(0.5)
        s.sendall(b'GET / HTTP/1.0\r\n\r\n')
        try:
            assert not s.recv(100), 'a stopped agent answers'
        except socket.timeout:
            pass
    os.kill(p.pid, signal.SIGCONT)
    p.terminate()
    assert finish(p).code == 143


def test_a_health_check_that_cannot_be_is_said_and_the_job_goes_on():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        s.listen()
        for where, words in ((str(s.getsockname()[1]), 'Address already in use'),
                             ('x', 'TORCHELASTIC_HEALTH_CHECK_PORT=x'),
                             ('host:80', 'give PORT, or ADDRESS:PORT')):
            r = flaunch('true', env={'TORCHELASTIC_HEALTH_CHECK_PORT': where})
            assert r.code == 0 and words in r.err, r
            assert len(lines(r.err)) == 1, r


def test_the_health_check_may_be_given_an_address():
    port = free_port()
    p = start(['sleep', '100'],
              env={'TORCHELASTIC_HEALTH_CHECK_PORT': '127.0.0.2:%d' % port})

    def get():
        try:
            with socket.create_connection(('127.0.0.2', port), 5) as s:
                s.sendall(b'HEAD / HTTP/1.0\n\n')
                return s.makefile('rb').read()
        except OSError:
            return None
    answer = wait_until(get, 'an answer')
    assert answer.startswith(b'HTTP/1.1 200 OK\r\n'), answer
    assert answer.endswith(b'\r\n\r\n'), answer
    p.terminate()
    assert finish(p).code == 143


# ----------------------------------------------------------- completions

def completion(shell):
    r = flaunch('--print-completion', shell)
    assert r.code == 0, r
    return r.out


def test_bash_completes_options_and_values():
    script = completion('bash') + '''
    complete_words() {
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _flaunch
        echo "${COMPREPLY[@]}"
    }
    complete_words flaunch --rdzv-b
    complete_words flaunch --rdzv-backend = s
    complete_words flaunch --rdzv_backend ''
    complete_words flaunch --role ''
    complete_words flaunch train
    '''
    done = subprocess.run(['bash', '-uc', script], stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, timeout=LONG, check=True)
    assert done.stdout == b'--rdzv-backend\nstatic\nstatic c10d\n\n\n', done


def test_fish_completes_options_and_values():
    def complete(text):
        done = subprocess.run(
            ['fish', '--no-config', '-c', completion('fish') +
             "complete -C '%s'" % text], stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL, timeout=LONG, check=True,
            env=clean_env({'HOME': '/nonexistent'}))
        return [line.split('\t')[0] for line in lines(done.stdout.decode())]
    assert complete('flaunch --rdzv-b') == ['--rdzv-backend']
    assert complete('flaunch --event-log-handler ') == ['console', 'null']


def test_zsh_completes_options_and_values():
    """In a terminal, since it completes nowhere else."""
    with TempDir() as d:
        with open(d + '/flaunch.zsh', 'w') as f:
            f.write(completion('zsh'))
        script = r'''
        zmodload zsh/zpty
        zpty z zsh -f -i
        zpty -w z "PROMPT=; autoload -Uz compinit; compinit -D; source %s"
        zpty -w z "setopt no_list_beep; print BEGIN"
        zpty -r -m z seen "*BEGIN*BEGIN*"
        zpty -w -n z "flaunch --rdzv-b"$'\t'"c1"$'\t'
        zpty -r -m z seen "*c10d*"
        print -r -- "$seen"
        ''' % (d + '/flaunch.zsh')
        done = subprocess.run(['zsh', '-fc', script], stdout=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, timeout=LONG,
                              env=clean_env({'HOME': d, 'TERM': 'dumb'}))
    # It goes back one column to write the sign again.
    assert b'--rdzv-backend=c10d' in done.stdout.replace(b'=\b', b''), done


# -------------------------------------------------------------- bad input

# What no option of this name takes; options that take any text are not here.
BAD = {
    'nproc-per-node': ['0', '-1', '', 'x', '2.0', '0x2', 'GPU', '65537',
                       '9' * 30],
    'nnodes': ['0', '-1', '', 'x', '1:', ':1', '2:1', '1:1:1', '1.5'],
    'node-rank': ['-1', '', 'x', '1', '1.0'],
    'master-addr': ['', 'a b', '-x', 'a/b'],
    'master-port': ['-1', '', 'x', '70000', '1.0'],
    'rdzv-endpoint': ['a b', 'h:x', 'h:70000', 'h:-1', ':5'],
    'rdzv-backend': ['', 'C10D', 'bogus', 'etcd', 'etcd-v2'],
    'rdzv-conf': ['=1', 'a', 'a=', 'a=1,', 'join_timeout=x', 'join_timeout=0',
                  'timeout=-1', 'is_host=maybe', 'store_type=x',
                  'keep_alive_max_attempt=0', 'last_call_timeout=inf'],
    'join-timeout': ['-1', '', 'x', 'inf', '1s', 'nan'],
    'heartbeat-timeout': ['-1', '', 'x', '1', '601'],
    'local-addr': ['a b', '-x'],
    'shutdown-timeout': ['-1', '', 'x', 'inf', 'nan', '1s'],
    'max-restarts': ['-1', '', 'x', '1.5', '0x1', '9' * 30],
    'restart-backoff': ['-1', '', 'x', 'inf'],
    'timeout': ['-1', '', 'x', 'inf', '1h'],
    'max-spread': ['-1', '', 'x', 'nan'],
    'signals-to-handle': ['SIGBOGUS', 'SIGKILL', 'TERM,KILL', '99'],
    'forward-signals': ['SIGBOGUS', 'KILL', 'TERM', 'STOP'],
    'stdin': ['', 'x', '-1', '1', 'None'],
    'redirects': ['', '4', '-1', 'x', '0:4', '0:3,', ' 3', '1:1', '0-1:3', ':3'],
    'tee': ['', '4', '-1', 'x', '0:4', '0:3,', ' 3', '1:1', 'all:'],
    'local-ranks-filter': ['x', '0,', '-1', '3-1', ','],
    'event-log-handler': ['', 'bogus', 'Console'],
    'numa-binding': ['', 'bogus', 'NODE', 'core_complex'],
    'monitor-interval': ['', '0', '-1', 'x', 'inf', 'nan'],
    'start-method': ['', 'bogus', 'Spawn'],
    'logs-specs': ['', 'default'],
    'legacy-dialect': ['', '2.2', 'x'],
    'print-completion': ['', 'tcsh'],
    'store-max-connections': ['', '0', '-1', 'x', '1.5', '1X'],
    'store-max-keys': ['', '0', '-1', 'x'],
    'store-max-key-bytes': ['', '0', '-1', 'x', '1T'],
    'store-max-value-bytes': ['', '0', '-1', 'x'],
    'store-max-memory': ['', '0', '-1', 'x', '1 G'],
}
# Any text is a value of these.
ANY_TEXT = {'rdzv-id', 'bind', 'role', 'log-dir', 'log-prefix',
            'duplicate-stdout-filters', 'duplicate-stderr-filters',
            'keep-processes'}


def refused(r, d, text):
    assert r.code == 2, r
    assert len(lines(r.err)) == 1 and r.out == '', r
    assert text in r.err, (text, r)
    assert not os.path.exists(d + '/ran'), r


def test_every_malformed_value_is_refused_with_one_line_that_quotes_it():
    with TempDir() as d:
        for option, values in BAD.items():
            for value in values:
                r = flaunch('--%s=%s' % (option, value), 'touch', d + '/ran')
                refused(r, d, '--' + option)
                # Of a list, the item that is wrong.
                assert any(item in r.err for item in value.split(',')), r


def test_every_option_with_a_value_is_in_the_table_of_bad_ones():
    rows = re.findall(r'^  (?:-.,|   ) --([a-z-]+)( [^ ]+)?',
                      flaunch('--help').out, re.M)
    valued = {name for name, metavar in rows if metavar.strip()}
    assert valued == set(BAD) | ANY_TEXT, valued ^ (set(BAD) | ANY_TEXT)


def test_a_malformed_variable_is_refused_as_the_option_is():
    with TempDir() as d:
        for name, value in (('PET_NPROC_PER_NODE', ''), ('PET_NNODES', 'x'),
                            ('PET_STANDALONE', 'true'), ('PET_MODULE', ''),
                            ('PET_MAX_RESTARTS', '1.5'),
                            ('FLAUNCH_OPT_TIMEOUT', 'soon'),
                            ('FLAUNCH_OPT_PIDNS', 'yes'),
                            ('PET_START_METHOD', 'bogus'),
                            ('PET_EVENT_LOG_HANDLER', 'bogus')):
            r = flaunch('touch', d + '/ran', env={name: value})
            refused(r, d, value)
            assert name in r.err, r
        # What the command line says is not looked for elsewhere.
        r = flaunch('--max-restarts=0', 'true', env={'PET_MAX_RESTARTS': 'x'})
        assert r.code == 0, r


def test_flags_take_no_value_and_values_are_not_forgotten():
    with TempDir() as d:
        flags = [name for name, metavar in re.findall(
            r'^  (?:-.,|   ) --([a-z-]+)( [A-Za-z]\S*)?',
            flaunch('--help').out, re.M) if not metavar]
        assert 'standalone' in flags and 'tee' not in flags, flags
        for name in flags:
            r = flaunch('--%s=1' % name, 'touch', d + '/ran')
            refused(r, d, '--' + name)
        for option in list(BAD) + sorted(ANY_TEXT):
            r = flaunch('--' + option, '--standalone', 'touch', d + '/ran')
            refused(r, d, '--standalone')
            r = flaunch('--' + option)
            refused(r, d, '--%s needs a value' % option)
